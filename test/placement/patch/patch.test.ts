import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Operation } from '../../../src/kit/json-patch.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { daemonSetPatch, nodePatch, podPatch, releasePatch } from '../../../src/placement/patch/patch.ts';
import { lacking } from '../../../src/placement/patch/tolerations.ts';
import type { PlacementIntent } from '../../../src/placement/placing.ts';
import { preference, requirement, requires, term } from '../affinities.ts';
import { node, taint, toleration } from '../objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const OTHER = { key: 'x', operator: 'Exists', tolerationSeconds: 300 };

const test = (path: string, value: unknown): Operation => ({ op: 'test', path, value });
const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value });
const replace = (path: string, value: unknown): Operation => ({ op: 'replace', path, value });
const remove = (path: string): Operation => ({ op: 'remove', path });

const generation = (value: number) => test('/metadata/generation', value);

describe("a pod's patch", () => {
  const uid = test('/metadata/uid', 'u1');
  const [LIST, END] = ['/spec/tolerations', '/spec/tolerations/-'];
  const rows: [
    given: string,
    generation: number | undefined,
    present: readonly JsonObject[] | undefined,
    wanted: readonly (typeof AMD)[],
    ...expected: Operation[],
  ][] = [
    ['nothing is wanted', 1, undefined, []],
    ['it has what is wanted', 1, [AMD, ARM], [AMD, ARM]],
    ['it tolerates everything', 1, [{ operator: 'Exists' }], [AMD, ARM]],
    ['it has no list', 1, undefined, [AMD, ARM], uid, generation(1), test(LIST, null), add(LIST, [AMD, ARM])],
    // A server that counts no generations.
    ['it has neither', undefined, undefined, [AMD], uid, test(LIST, null), add(LIST, [AMD])],
    ["it has others'", undefined, [OTHER], [AMD], uid, test(LIST, [OTHER]), add(END, AMD)],
    ['it has an empty list', 2, [], [AMD], uid, generation(2), add(END, AMD)],
    ["it has others'", 2, [OTHER], [AMD, ARM], uid, generation(2), add(END, AMD), add(END, ARM)],
    ['it has one of two', 2, [ARM, OTHER], [AMD, ARM], uid, generation(2), add(END, AMD)],
  ];
  for (const [given, generation, tolerations, wanted, ...expected] of rows) {
    it(`where ${given} at generation ${generation} has ${expected.length} operations`, () => {
      const pod = readPod({ metadata: { uid: 'u1', generation }, spec: { tolerations } });
      expect(podPatch(pod, lacking(pod.tolerations ?? [], wanted))).to.deep.equal(expected);
    });
  }
});

describe("a node's patch", () => {
  const path = '/metadata/annotations/archaware.dev~1managed';
  const uid = test('/metadata/uid', 'u1');
  const arm = test('/status/nodeInfo/architecture', 'arm64');
  const ours = taint('supported-arch=arm64:NoSchedule');
  const gpu = taint('gpu:NoSchedule', { timeAdded: 't' });
  const TAINTS = '/spec/taints';
  const annotated = (given: Parameters<typeof node>[0]) => ({ ...node(given), hasAnnotations: true });
  const LAST = node({ taints: [ours], managed: 'old' });
  const MUTE = node({ architecture: '', taints: [ours], managed: 'old' });
  const created = add('/metadata/annotations', { 'archaware.dev/managed': 'm' });
  const unannotated = test('/metadata/annotations', null);
  const old = test(path, 'old');
  const noted = add(path, 'm');
  const gpuToo = [test(TAINTS, [gpu]), replace(TAINTS, [gpu, ours])];
  const spelled = test('/status/nodeInfo/architecture', 'aarch64');
  const rows: [
    given: string,
    node: ReturnType<typeof node>,
    taints: readonly JsonObject[] | 'unchanged',
    managed: string | undefined,
    ...expected: Operation[],
  ][] = [
    ['has nothing', node({}), [ours], 'm', arm, test(TAINTS, null), add(TAINTS, [ours]), unannotated, created],
    ['has taints and another annotation', annotated({ taints: [gpu] }), [gpu, ours], 'm', arm, ...gpuToo, noted],
    ['has another record', node({ taints: [gpu], managed: 'old' }), [gpu, ours], 'm', arm, ...gpuToo, old, noted],
    ['loses its only taint', LAST, [], undefined, arm, test(TAINTS, [ours]), remove(TAINTS), old, remove(path)],
    ['loses its record alone', node({ managed: 'old' }), [], undefined, arm, old, remove(path)],
    ['gets a record for its taint', annotated({ taints: [ours] }), 'unchanged', 'm', arm, noted],
    ['has no taints', annotated({ taints: [] }), [ours], 'm', arm, test(TAINTS, []), replace(TAINTS, [ours]), noted],
    ['has reported no architecture', MUTE, [], undefined, test(TAINTS, [ours]), remove(TAINTS), old, remove(path)],
    // What it reported is tested.
    ['has another spelling', annotated({ architecture: 'aarch64', taints: [ours] }), 'unchanged', 'm', spelled, noted],
  ];
  for (const [given, what, taints, managed, ...expected] of rows) {
    it(`where it ${given}`, () => {
      const all = taints === 'unchanged' ? (what.taints ?? []) : taints;
      const decided = { kind: 'set', taints: all, addedLabels: [], removedLabels: [], managed } as const;
      expect(nodePatch(what, decided)).to.deep.equal([uid, ...expected]);
    });
  }
});

describe("a DaemonSet's patch", () => {
  const list = '/spec/template/spec/tolerations';
  const path = '/metadata/annotations/archaware.dev~1tolerations';
  const tests = [test('/metadata/uid', 'u1'), generation(4)];
  const OLD = { 'archaware.dev/tolerations': 'old' };
  const created = add('/metadata/annotations', { 'archaware.dev/tolerations': 'r' });
  const unannotated = test('/metadata/annotations', null);
  const old = test(path, 'old');
  const noted = add(path, 'r');
  const rows: [
    given: string,
    present: readonly JsonObject[] | undefined,
    annotations: JsonObject | undefined,
    tolerations: readonly JsonObject[],
    recorded: string | undefined,
    ...expected: Operation[],
  ][] = [
    ['has nothing', undefined, undefined, [AMD], 'r', test(list, null), add(list, [AMD]), unannotated, created],
    ['others', [OTHER], { a: 'b' }, [OTHER, AMD], 'r', test(list, [OTHER]), replace(list, [OTHER, AMD]), noted],
    ['has another record', [AMD], OLD, [AMD, ARM], 'r', test(list, [AMD]), replace(list, [AMD, ARM]), old, noted],
    ['loses everything', [AMD], OLD, [], undefined, test(list, [AMD]), remove(list), old, remove(path)],
    ['loses its record alone', [OTHER], OLD, [OTHER], undefined, old, remove(path)],
  ];
  for (const [given, present, annotations, tolerations, recorded, ...expected] of rows) {
    it(`where it ${given}`, () => {
      const daemonSet = readDaemonSet({
        metadata: { uid: 'u1', generation: 4, annotations },
        spec: { template: { spec: { tolerations: present } } },
      });
      const decided = {
        kind: 'set',
        affinity: undefined,
        tolerations,
        recorded,
        rolls: JSON.stringify(present) !== JSON.stringify(tolerations),
      } as const;
      expect(daemonSetPatch(daemonSet, decided)).to.deep.equal([...tests, ...expected]);
    });
  }
});

const OURS = { name: 'archaware.dev/architecture' };
const ARCH = requirement('arch In amd64');
const TERMS = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms';

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
    ['by taints', { tolerations: [OTHER] }, tolerated, [...start, add('/spec/tolerations/-', AMD), end]],
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
