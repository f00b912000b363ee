import { expect } from 'chai';
import { adviseOnPools, isKeptOffByOthers } from '../../../src/analysis/explain/pool-advice.ts';
import { readNodePool } from '../../../src/analysis/nodes/node-pools.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { node, settings, taint } from '../../placement/objects.ts';

const arm = (pool: string): Node => node({ labels: { 'karpenter.sh/nodepool': pool }, architecture: 'arm64' });
const nodePool = (name: string, architecture: string, tainted = true) =>
  readNodePool({
    metadata: { name },
    spec: {
      template: {
        spec: {
          requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: [architecture] }],
          ...(tainted ? { taints: [taint(`supported-arch=${architecture}:NoSchedule`)] } : {}),
        },
      },
    },
  }) ?? [];

describe('the advice about node pools', () => {
  type Row = [
    what: string,
    nodes: readonly Node[],
    nodePools: ReturnType<typeof nodePool>[] | undefined,
    architectures: readonly string[] | undefined,
    steps: readonly RegExp[],
    canGrow: boolean,
  ];
  const rows: Row[] = [
    ['no pool', [node({})], undefined, ['amd64'], [], false],
    ['a NodePool of the architecture', [], [nodePool('a', 'amd64')], ['amd64'], [/^a node of NodePool a could/], true],
    ['a NodePool of another architecture', [arm('b')], [nodePool('b', 'arm64')], ['amd64'], [], false],
    [
      'NodePools without the taint',
      [arm('b')],
      [nodePool('a', 'amd64', false), nodePool('b', 'arm64', false)],
      ['amd64'],
      [
        /^NodePool a lacks the taint supported-arch=amd64:/,
        /^NodePool b lacks the taint supported-arch=arm64:/,
        /^a node of NodePool a could/,
      ],
      true,
    ],
    ['NodePools that were not read', [arm('b'), arm('b')], undefined, ['arm64'], [/^a node of NodePool b could/], true],
    ['NodePools that were not read, for another architecture', [arm('b')], undefined, ['amd64'], [], false],
    [
      'a node group',
      [node({ labels: { agentpool: 'c' }, architecture: 'arm64' })],
      [],
      undefined,
      [/^a node of AKS node pool c could/],
      true,
    ],
    [
      'many',
      ['1', '2', '3', '4', '5'].map(arm),
      undefined,
      ['arm64'],
      [/^a node of NodePool 1 or NodePool 2 or NodePool 3, and 2 more could/],
      true,
    ],
  ];
  for (const [what, nodes, nodePools, architectures, steps, canGrow] of rows) {
    it(`${what}, for ${architectures ?? 'any'}`, () => {
      const advice = adviseOnPools(nodes, nodePools?.flat(), architectures, settings());
      expect(advice.canGrow).to.equal(canGrow);
      expect(advice.steps).to.have.lengthOf(steps.length);
      for (const [index, step] of steps.entries()) expect(advice.steps[index]).to.match(step);
    });
  }

  const obstacle = (key: string) => ({ kind: 'taint', taint: { key, value: '', effect: 'NoSchedule' } }) as const;
  const others: [what: string, obstacles: Parameters<typeof isKeptOffByOthers>[0], expected: boolean][] = [
    ['nothing', [], false],
    ['a taint of others', [obstacle('CriticalAddonsOnly')], true],
    ['two taints of others', [obstacle('CriticalAddonsOnly'), obstacle('gpu')], true],
    ['the taint of archaware', [obstacle('supported-arch')], false],
    ['both', [obstacle('supported-arch'), obstacle('gpu')], false],
    ['a taint of Kubernetes', [obstacle('node.kubernetes.io/not-ready')], false],
    ['a cordon', [{ kind: 'unschedulable' }], false],
    ['a cordon and a taint of others', [{ kind: 'unschedulable' }, obstacle('gpu')], false],
  ];
  for (const [what, obstacles, expected] of others)
    it(`${what} is ${expected ? '' : 'not '}the work of others alone`, () =>
      expect(isKeptOffByOthers(obstacles, settings())).to.equal(expected));
});
