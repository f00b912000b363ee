import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Operation } from '../../src/kit/json-patch.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { releasePatch } from '../../src/placement/patch/patch.ts';
import type { PlacementIntent } from '../../src/placement/placing.ts';
import { preference, requirement, requires, term } from './affinities.ts';
import { toleration } from './objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const X = { key: 'x', operator: 'Exists', new: 1 };
const OURS = { name: 'archaware.dev/architecture' };
const ARCH = requirement('arch In amd64');
const TERMS = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms';

const test = (path: string, value: unknown): Operation => ({ op: 'test', path, value });
const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value });
const remove = (path: string): Operation => ({ op: 'remove', path });

const whole: PlacementIntent = {
  tolerations: [AMD],
  affinity: { required: [ARCH], preferred: [{ architecture: 'amd64', weight: 75 }] },
};
const required: PlacementIntent = { tolerations: [], affinity: { required: [ARCH], preferred: [] } };
const tolerated: PlacementIntent = { tolerations: [AMD], affinity: undefined };

describe('the patch that releases a gated pod', () => {
  const start = [test('/metadata/uid', 'u1'), test('/metadata/generation', 3), test('/spec/schedulingGates', [OURS])];
  const end = remove('/spec/schedulingGates');
  const rows: [
    given: string,
    spec: JsonObject,
    placing: PlacementIntent | undefined,
    expected: readonly Operation[],
  ][] = [
    ['of nothing takes the gate alone', {}, undefined, [...start, end]],
    [
      'of a bare pod',
      {},
      whole,
      [
        ...start,
        add('/spec/affinity', {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [ARCH] }] },
            preferredDuringSchedulingIgnoredDuringExecution: [preference('amd64=75')],
          },
        }),
        add('/spec/tolerations', [AMD]),
        end,
      ],
    ],
    ['by taints', { tolerations: [X] }, tolerated, [...start, add('/spec/tolerations/-', AMD), end]],
    [
      'with terms of its own: expressions are appended, as the API server takes nothing else',
      { affinity: requires(term('zone In a'), {}, term('arch In arm64'), { matchFields: [{ key: 'metadata.name' }] }) },
      required,
      [...start, add(`${TERMS}/0/matchExpressions/-`, ARCH), add(`${TERMS}/3/matchExpressions`, [ARCH]), end],
    ],
    [
      'with affinity of another kind',
      { affinity: { podAffinity: {} } },
      required,
      [...start, add('/spec/affinity/nodeAffinity', requires({ matchExpressions: [ARCH] }).nodeAffinity), end],
    ],
  ];
  for (const [given, spec, placing, expected] of rows) {
    it(given, () => {
      const pod = readPod({ metadata: { uid: 'u1', generation: 3 }, spec: { schedulingGates: [OURS], ...spec } });
      expect(pod.gated && releasePatch(pod, pod.gated, placing)).to.deep.equal(expected);
    });
  }

  it('keeps the gates of others', () => {
    for (const [gates, path] of [
      [[OURS, { name: 'q' }], '/spec/schedulingGates/0'],
      [[{ name: 'q' }, OURS, { name: 'r' }], '/spec/schedulingGates/1'],
    ] as const) {
      const pod = readPod({ metadata: { uid: 'u1', generation: 3 }, spec: { schedulingGates: gates } });
      const patch = pod.gated && releasePatch(pod, pod.gated, undefined);
      expect(patch?.slice(2)).to.deep.equal([test('/spec/schedulingGates', gates), remove(path)]);
    }
  });

  it('tests the resource version if the pod has no generation, because images and node selector matter too', () => {
    const pod = readPod({ metadata: { uid: 'u1', resourceVersion: '42' }, spec: { schedulingGates: [OURS] } });
    expect(pod.gated && releasePatch(pod, pod.gated, undefined)).to.deep.equal([
      test('/metadata/uid', 'u1'),
      test('/metadata/resourceVersion', '42'),
      test('/spec/schedulingGates', [OURS]),
      end,
    ]);
  });
});
