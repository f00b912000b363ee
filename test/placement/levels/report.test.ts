import { expect } from 'chai';
import { node, object, report, texts, type World } from '../readiness/world.ts';

const LABEL = 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V3';

/** One node has the level v3; another one is in a pool without labels of node-feature-discovery. */
const CLUSTER: Partial<World> = {
  targets: ['amd64'],
  nodes: [
    node('amd64', { name: 'new', labels: { [LABEL]: 'true' } }),
    node('amd64', { name: 'old', labels: { pool: 'old' } }),
  ],
  answerOf: () => ({
    kind: 'known',
    platforms: [{ os: 'linux', architecture: 'amd64', variant: 'v3' }],
    isIndex: false,
  }),
};

describe('the report on an image for a CPU level', () => {
  const inOldPool = { nodeSelector: { pool: 'old' } };
  const asks = `archaware (by the CPU level of an image, or pods.matchNodeLabels) asks for ${LABEL}=true`;
  const rows: readonly [string, object, 'affinity' | 'taints', readonly string[]][] = [
    ['is ready where a node has the label', {}, 'affinity', ['ready']],
    ['is pinned to a pool without the label', inOldPool, 'affinity', ['pinned', asks]],
    ['is ready in the mode taints, which requires no label', inOldPool, 'taints', ['ready']],
    ['is ready where the pod asks for the level itself', { nodeSelector: { [LABEL]: 'true' } }, 'affinity', ['ready']],
  ];
  for (const [title, pod, mode, expected] of rows) {
    it(title, () => {
      const [workload] = report({ objects: [object({ pod: { ...pod } })], ...CLUSTER, settings: { mode } }).workloads;
      expect(texts(workload?.verdicts.amd64)).to.deep.equal(expected);
    });
  }
});
