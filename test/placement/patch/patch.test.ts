import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Operation } from '../../../src/kit/json-patch.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { daemonSetPatch, nodePatch, podPatch } from '../../../src/placement/patch/patch.ts';
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
    expected: readonly Operation[],
  ][] = [
    ['nothing is wanted', 1, undefined, [], []],
    ['it has what is wanted', 1, [AMD, ARM], [AMD, ARM], []],
    ['it tolerates everything', 1, [{ operator: 'Exists' }], [AMD, ARM], []],
    ['it has no list', 1, undefined, [AMD, ARM], [uid, generation(1), test(LIST, null), add(LIST, [AMD, ARM])]],
    [
      'it has no list, on a server that counts no generations',
      undefined,
      undefined,
      [AMD],
      [uid, test(LIST, null), add(LIST, [AMD])],
    ],
    ['it has an empty list', 2, [], [AMD], [uid, generation(2), add(END, AMD)]],
    ["it has others'", 2, [OTHER], [AMD, ARM], [uid, generation(2), add(END, AMD), add(END, ARM)]],
    ['it has one of two', 2, [ARM, OTHER], [AMD, ARM], [uid, generation(2), add(END, AMD)]],
    [
      "it has others', on a server that counts no generations",
      undefined,
      [OTHER],
      [AMD],
      [uid, test(LIST, [OTHER]), add(END, AMD)],
    ],
  ];
  for (const [given, generation, tolerations, wanted, expected] of rows) {
    it(`where ${given} has ${expected.length} operations`, () => {
      const pod = readPod({ metadata: { uid: 'u1', generation }, spec: { tolerations } });
      expect(podPatch(pod, wanted)).to.deep.equal(expected);
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
  const annotations = (managed: string) => ({ 'archaware.dev/managed': managed });
  const rows: [
    given: string,
    node: ReturnType<typeof node>,
    taints: readonly JsonObject[] | 'unchanged',
    managed: string | undefined,
    expected: readonly Operation[],
  ][] = [
    [
      'has neither taints nor annotations',
      node({}),
      [ours],
      'm',
      [
        uid,
        arm,
        test(TAINTS, null),
        add(TAINTS, [ours]),
        test('/metadata/annotations', null),
        add('/metadata/annotations', annotations('m')),
      ],
    ],
    [
      'has taints and another annotation',
      annotated({ taints: [gpu] }),
      [gpu, ours],
      'm',
      [uid, arm, test(TAINTS, [gpu]), replace(TAINTS, [gpu, ours]), add(path, 'm')],
    ],
    [
      'has another record',
      node({ taints: [gpu], managed: 'old' }),
      [gpu, ours],
      'm',
      [uid, arm, test(TAINTS, [gpu]), replace(TAINTS, [gpu, ours]), test(path, 'old'), add(path, 'm')],
    ],
    [
      'loses its only taint',
      node({ taints: [ours], managed: 'old' }),
      [],
      undefined,
      [uid, arm, test(TAINTS, [ours]), remove(TAINTS), test(path, 'old'), remove(path)],
    ],
    ['loses its record alone', node({ managed: 'old' }), [], undefined, [uid, arm, test(path, 'old'), remove(path)]],
    [
      'gets a record for the taint that it has',
      annotated({ taints: [ours] }),
      'unchanged',
      'm',
      [uid, arm, add(path, 'm')],
    ],
    [
      'has an empty list of taints',
      annotated({ taints: [] }),
      [ours],
      'm',
      [uid, arm, test(TAINTS, []), replace(TAINTS, [ours]), add(path, 'm')],
    ],
    [
      'has reported no architecture',
      node({ architecture: '', taints: [ours], managed: 'old' }),
      [],
      undefined,
      [uid, test(TAINTS, [ours]), remove(TAINTS), test(path, 'old'), remove(path)],
    ],
    [
      'reported its architecture in another spelling, which is tested',
      annotated({ architecture: 'aarch64', taints: [ours] }),
      'unchanged',
      'm',
      [uid, test('/status/nodeInfo/architecture', 'aarch64'), add(path, 'm')],
    ],
  ];
  for (const [given, what, taints, managed, expected] of rows) {
    it(`where it ${given}`, () => {
      const decided = {
        kind: 'set',
        taints: taints === 'unchanged' ? (what.taints ?? []) : taints,
        addedLabels: [],
        removedLabels: [],
        managed,
      } as const;
      expect(nodePatch(what, decided)).to.deep.equal(expected);
    });
  }
});

describe("a DaemonSet's patch", () => {
  const list = '/spec/template/spec/tolerations';
  const path = '/metadata/annotations/archaware.dev~1tolerations';
  const tests = [test('/metadata/uid', 'u1'), generation(4)];
  const OLD = { 'archaware.dev/tolerations': 'old' };
  const to = (tolerations: readonly JsonObject[], recorded: string | undefined, rolls = true) => ({
    tolerations,
    recorded,
    rolls,
  });
  const rows: [
    given: string,
    present: readonly JsonObject[] | undefined,
    annotations: JsonObject | undefined,
    decided: { tolerations: readonly JsonObject[]; recorded: string | undefined; rolls: boolean },
    expected: readonly Operation[],
  ][] = [
    [
      'has neither a list nor annotations',
      undefined,
      undefined,
      to([AMD], 'r'),
      [
        ...tests,
        test(list, null),
        add(list, [AMD]),
        test('/metadata/annotations', null),
        add('/metadata/annotations', { 'archaware.dev/tolerations': 'r' }),
      ],
    ],
    [
      'has a list and another annotation',
      [OTHER],
      { a: 'b' },
      to([OTHER, AMD], 'r'),
      [...tests, test(list, [OTHER]), replace(list, [OTHER, AMD]), add(path, 'r')],
    ],
    [
      'has another record',
      [AMD],
      OLD,
      to([AMD, ARM], 'r'),
      [...tests, test(list, [AMD]), replace(list, [AMD, ARM]), test(path, 'old'), add(path, 'r')],
    ],
    [
      'loses everything',
      [AMD],
      OLD,
      to([], undefined),
      [...tests, test(list, [AMD]), remove(list), test(path, 'old'), remove(path)],
    ],
    [
      'loses its record alone',
      [OTHER],
      OLD,
      to([OTHER], undefined, false),
      [...tests, test(path, 'old'), remove(path)],
    ],
  ];
  for (const [given, tolerations, annotations, decided, expected] of rows) {
    it(`where it ${given}`, () => {
      const daemonSet = readDaemonSet({
        metadata: { uid: 'u1', generation: 4, annotations },
        spec: { template: { spec: { tolerations } } },
      });
      expect(daemonSetPatch(daemonSet, { kind: 'set', affinity: undefined, ...decided })).to.deep.equal(expected);
    });
  }
});
