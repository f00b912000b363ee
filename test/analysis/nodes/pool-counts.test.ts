import { expect } from 'chai';
import { countByPool, poolCounts, untaintedPoolsNote } from '../../../src/analysis/nodes/pool-counts.ts';
import { node, settings, taint } from '../../placement/objects.ts';

const OURS = 'supported-arch=arm64:NoSchedule';
describe('a node that joins', () => {
  const plain = settings();

  it('is named with its pool by plan, for a NodePool only if NodePools cannot be read', () => {
    const nodes = [
      ...['b', 'a', 'a'].map((name) => node({ labels: { 'karpenter.sh/nodepool': name } })),
      node({ labels: { agentpool: 'c' } }),
      node({ labels: { agentpool: 'd' }, taints: [taint(OURS)] }),
      node({}),
    ];
    expect(untaintedPoolsNote(nodes, plain, false)).to.equal(
      'nodes without the taint supported-arch:NoSchedule belong to pools: AKS node pool c (1 node), NodePool a (2 nodes), ' +
        'NodePool b (1 node). If these pools are scaled, their templates need the taint: an autoscaler that plans without it may ' +
        'start nodes that pending pods cannot use (docs/autoscalers.md)',
    );
    expect(untaintedPoolsNote(nodes, plain, true)).to.include('pools: AKS node pool c (1 node). If');
    expect(untaintedPoolsNote(nodes.slice(4), plain, true)).to.equal(undefined);
  });

  it('is counted by pool, and the first few pools are named', () => {
    const nodes = ['1', '2', '3', '4', '5', '6', '7', '7'].map((name) => node({ labels: { agentpool: name } }));
    const text = poolCounts(countByPool(nodes, () => true));
    expect(text).to.match(/^AKS node pool 1 \(1 node\), .*AKS node pool 5 \(1 node\), and 2 more$/);
  });
});
