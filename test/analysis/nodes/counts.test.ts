import { expect } from 'chai';
import { countNodes, nodesWithoutTaint } from '../../../src/analysis/nodes/counts.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import { settings } from '../../placement/objects.ts';

const node = (name: string, architecture: string, taints: readonly JsonObject[] = [], labels = {}) =>
  readNode({ metadata: { name, labels }, spec: { taints }, status: { nodeInfo: { architecture } } });
const taint = (key: string, value: string) => ({ key, value, effect: 'NoSchedule' });
const provider = { manage: false, key: 'kubernetes.io/arch', effect: 'NoSchedule', nodeSelector: [] } as const;

describe('the count of nodes', () => {
  it('is by architecture and taint', () => {
    const nodes = [
      node('a', 'arm64'),
      node('b', 'amd64', [taint('supported-arch', 'amd64')]),
      node('c', 'amd64', [taint('other', 'x')]),
      node('d', ''),
    ];
    expect(countNodes(nodes, settings())).to.deep.equal([
      { architecture: 'amd64', total: 2, tainted: 1, untainted: 1, foreign: 0 },
      { architecture: 'arm64', total: 1, tainted: 0, untainted: 1, foreign: 0 },
      { architecture: 'unknown', total: 1, tainted: 0, untainted: 1, foreign: 0 },
    ]);
    expect(nodesWithoutTaint(nodes, settings())).to.deep.equal(['a', 'c']);
  });

  it("counts a provider's taint as foreign", () => {
    const nodes = [node('a', 'arm64', [taint('kubernetes.io/arch', 'arm64')])];
    expect(countNodes(nodes, settings({ taints: provider }))).to.deep.include({
      architecture: 'arm64',
      total: 1,
      tainted: 0,
      untainted: 0,
      foreign: 1,
    });
  });

  it('misses no taint where the configuration gives none', () => {
    const nodes = [node('a', 'arm64', [], { pool: 'x' })];
    const { taints } = settings();
    const selecting = { ...taints, nodeSelector: [{ key: 'pool', operator: 'notin', values: ['x'] }] } as const;
    expect(nodesWithoutTaint(nodes, settings({ taints: selecting }))).to.deep.equal([]);
    expect(nodesWithoutTaint(nodes, settings({ mode: 'affinity' }))).to.deep.equal([]);
  });
});
