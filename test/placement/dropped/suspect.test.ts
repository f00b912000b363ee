import { expect } from 'chai';
import { standing } from '../../../src/placement/decide.ts';
import { addPod, createWorkloads, type SeenPod, suspectsIn } from '../../../src/placement/dropped/suspect.ts';

const BOTH = ['amd64', 'arm64'];

/** A pod of a ReplicaSet of the Deployment `web`. `at`: when it was created. */
function pod(set: string, at: number, architectures: readonly string[], node?: string): SeenPod {
  const name = `web-${set}-${at}`;
  return {
    key: `shop/${name}`,
    pod: {
      ...{ namespace: 'shop', name, labels: { 'pod-template-hash': set }, createdAt: at },
      owner: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `web-${set}`, uid: set },
      ...{ phase: node === undefined ? 'Pending' : 'Running', nodeName: node, deleting: false, mirror: false },
    },
    decision: standing(architectures, undefined),
    nodeArchitecture: node,
  };
}

describe('a workload whose newest template may have lost an architecture', () => {
  const cases: readonly (readonly [title: string, pods: readonly SeenPod[], expected: readonly string[]])[] = [
    ['a new template with less', [pod('a', 1, BOTH, 'arm64'), pod('b', 2, ['amd64'])], ['shop/web-a-1 shop/web-b-2']],
    ['a new template with more', [pod('a', 1, ['amd64'], 'amd64'), pod('b', 2, BOTH)], []],
    ['one template', [pod('a', 1, BOTH, 'arm64'), pod('a', 2, BOTH)], []],
    [
      'a new pod of the old template beside a new template with more',
      [pod('a', 1, ['amd64'], 'amd64'), pod('b', 2, BOTH, 'arm64'), pod('a', 3, ['amd64'])],
      [],
    ],
    ['a tag that moved', [pod('a', 1, BOTH, 'arm64'), pod('a', 2, ['amd64'])], ['shop/web-a-1 shop/web-a-2']],
    ['nothing that runs', [pod('a', 1, BOTH), pod('b', 2, ['amd64'])], []],
    ['an architecture without a node', [pod('a', 1, ['amd64', 's390x'], 'amd64'), pod('b', 2, ['amd64'])], []],
  ];
  for (const [title, pods, expected] of cases) {
    it(`${expected.length === 0 ? 'is none with' : 'is found with'} ${title}`, () => {
      const workloads = createWorkloads();
      for (const each of pods) addPod(workloads, each);
      const found = [...suspectsIn(workloads, BOTH, () => undefined)].flatMap((one) => one ?? []);
      expect(found.map(({ before, after }) => `${before} ${after}`)).to.deep.equal(expected);
    });
  }
});
