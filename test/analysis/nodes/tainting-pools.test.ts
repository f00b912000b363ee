import { expect } from 'chai';
import { readNodePool } from '../../../src/analysis/nodes/node-pools.ts';
import { taintingPoolNotes, taintingPools } from '../../../src/analysis/nodes/tainting-pools.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { node, settings, taint } from '../../placement/objects.ts';

const OURS = 'supported-arch=arm64:NoSchedule';
const OLD = 'old.example.com/arch=arm64:NoSchedule';
const { taints: TAINTS } = settings();

const nodeOf = (labels: Record<string, string>, taints: readonly string[], managed?: readonly string[]): Node => ({
  ...node({ labels, taints: taints.map((text) => taint(text)), ...(managed ? { managed } : {}) }),
  uid: JSON.stringify([labels, taints]),
});
const karpenter = (name: string, ...rest: [taints: readonly string[], managed?: readonly string[]]) =>
  nodeOf({ 'karpenter.sh/nodepool': name }, ...rest);
const nodePool = (name: string, text: string, list = 'taints') =>
  readNodePool({ metadata: { name }, spec: { template: { spec: { [list]: [taint(text)] } } } }) ?? [];

describe('the pools that taint nodes again after clean', () => {
  type Row = [
    what: string,
    nodes: readonly Node[],
    nodePools: ReturnType<typeof nodePool>[] | undefined,
    taints: typeof TAINTS,
    found: string[],
  ];
  const rows: Row[] = [
    ['a NodePool that sets the taint', [karpenter('a', [OURS])], [nodePool('a', OURS)], TAINTS, ['a 1 certain']],
    ['one without a node', [], [nodePool('a', OURS)], TAINTS, ['a 0 certain']],
    ['one that sets it at startup', [], [nodePool('a', OURS, 'startupTaints')], TAINTS, ['a 0 certain']],
    ['one that sets another taint', [karpenter('a', [OURS])], [nodePool('a', 'gpu=yes:NoSchedule')], TAINTS, []],
    ['one that sets a recorded taint', [karpenter('a', [OLD], [OLD])], [nodePool('a', OLD)], TAINTS, ['a 1 certain']],
    ['NodePools that cannot be read', [karpenter('a', [OURS])], undefined, TAINTS, ['a 1 perhaps']],
    ['a node group', [nodeOf({ agentpool: 'b' }, [OURS])], [], TAINTS, ['b 1 perhaps']],
    ['a node group without the taint', [nodeOf({ agentpool: 'b' }, [])], undefined, TAINTS, []],
    ['nodes of no pool', [nodeOf({}, [OURS])], undefined, TAINTS, []],
    ['a taint of the provider', [karpenter('a', [OURS])], [nodePool('a', OURS)], { ...TAINTS, manage: false }, []],
  ];
  for (const [what, nodes, nodePools, taints, expected] of rows) {
    it(`${what}: ${expected.join(', ') || 'none'}`, () => {
      const found = taintingPools(nodes, nodePools?.flat(), taints);
      const texts = found.map(
        ({ name, nodes: count, certain }) => `${name} ${count} ${certain ? 'certain' : 'perhaps'}`,
      );
      expect(texts).to.deep.equal(expected);
    });
  }

  it('are reported with what to do', () => {
    const notes = taintingPoolNotes(
      [
        { kind: 'NodePool', name: 'a', nodes: 2, certain: true },
        { kind: 'EKS node group', name: 'b', nodes: 1, certain: false },
      ],
      'supported-arch:NoSchedule',
    );
    expect(notes).to.deep.equal([
      'NodePool a (2 nodes): the template sets the taint supported-arch:NoSchedule itself. Remove it from spec.template.spec first: ' +
        'the next nodes have the taint again, no pod tolerates it any more, and pods for these nodes stay Pending (docs/autoscalers.md)',
      'EKS node group b (1 node): these nodes carry the taint supported-arch:NoSchedule. If the pool sets it (its taints, ' +
        '--register-with-taints), remove it there first: else the next nodes have the taint again, no pod tolerates it any more, and ' +
        'pods for these nodes stay Pending (docs/autoscalers.md)',
    ]);
    expect(taintingPoolNotes([], 'x:y')).to.deep.equal([]);
  });
});
