import { expect } from 'chai';
import type { Prices } from '../../../src/analysis/readiness/price.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { container, node, object, owned, report } from './world.ts';

const price = (cpu: number, memory = 0) => ({ cpu, memory });
const PRICES: Prices = {
  byArchitecture: new Map([
    ['amd64', price(0.04)],
    ['arm64', price(0.03)],
  ]),
};

function deployment(name: string, image: string, replicas: number, cpu = '1', memory = '1Gi'): JsonObject {
  const pod = { containers: [container(image, cpu, memory)] };
  return object({ name, metadata: { uid: `d-${name}` }, spec: { replicas }, pod });
}

/** A ReplicaSet of a Deployment, and pods of it on these nodes. */
function running(name: string, ...nodes: readonly string[]): JsonObject[] {
  const set = { name: `${name}-1`, uid: `r-${name}`, ...owned('Deployment', name, `d-${name}`) };
  const pods = nodes.map((nodeName, index) => {
    const metadata = { uid: `p-${name}-${index}`, ...owned('ReplicaSet', set.name, set.uid) };
    return object({ kind: 'Pod', name: `${set.name}-${index}`, metadata, pod: { nodeName } });
  });
  return [object({ kind: 'ReplicaSet', name: set.name, metadata: set, spec: { replicas: nodes.length } }), ...pods];
}

describe('what a move saves', () => {
  // Sums by hand, for 730 hours: 1 core on amd64 costs 29.20 for a month, on arm64 21.90.
  it('counts what is ready at the price of the target, and all else where it runs', () => {
    const objects = [
      deployment('web', 'web', 2),
      deployment('old', 'a-amd64', 3),
      ...running('web', 'amd64-1', 'arm64-1'),
      ...running('old', 'amd64-1', 'amd64-1', 'amd64-1'),
    ];
    const { summary, workloads } = report({ objects, prices: PRICES });
    expect(workloads.map(({ name, runsOn, cost }) => [name, runsOn, cost])).to.deep.equal([
      ['old', { amd64: 3 }, 87.6],
      ['web', { amd64: 1, arm64: 1 }, 51.1],
    ]);
    const { cost, rebuilds } = summary.targets.arm64 ?? {};
    expect(cost).to.deep.equal({ now: 138.7, moved: 131.4, saves: 7.3, unpriced: 0 });
    expect(rebuilds?.map(({ image, saves }) => [image, saves])).to.deep.equal([['a-amd64', 21.9]]);
  });

  it('takes the price of a node from its label, and that of a target from its nodes', () => {
    const label = 'node.kubernetes.io/instance-type';
    const prices = new Map([
      ['m6', price(0.05, 0.005)],
      ['m7', price(0.03, 0.004)],
    ]);
    const nodes = [
      node('amd64', { labels: { [label]: 'm6' } }),
      node('arm64', { labels: { [label]: 'm7' } }),
      node('amd64', { name: 'odd' }),
    ];
    const objects = [
      deployment('web', 'web', 1, '2', '4Gi'),
      deployment('odd', 'web', 1),
      ...running('web', 'amd64-1'),
      ...running('odd', 'odd'),
    ];
    const { summary, workloads } = report({
      objects,
      nodes,
      prices: { byArchitecture: new Map(), byLabel: { label, prices } },
    });
    // 2 × 0.05 + 4 × 0.005 = 0.12, and 2 × 0.03 + 4 × 0.004 = 0.076, for 730 hours.
    expect(summary.targets.arm64?.cost).to.deep.equal({ now: 87.6, moved: 55.48, saves: 32.12, unpriced: 1 });
    expect(workloads.map(({ name, cost }) => [name, cost])).to.deep.equal([
      ['odd', undefined],
      ['web', 87.6],
    ]);
  });

  it('counts files, and what does not run yet, at the first price, and ranks images by what they hold back', () => {
    const memory: Prices = {
      byArchitecture: new Map([
        ['amd64', price(0.04, 0.006)],
        ['arm64', price(0.03, 0.002)],
      ]),
    };
    const objects = [deployment('cores', 'a-amd64', 2), deployment('bytes', 'b-amd64', 1, '1', '8Gi')];
    for (const nodes of [[], [node('amd64'), node('arm64')]]) {
      const { cost, rebuilds } = report({ objects, nodes, prices: memory }).summary.targets.arm64 ?? {};
      // (3 × 0.04 + 10 × 0.006) × 730 = 131.4
      expect(cost).to.deep.equal({ now: 131.4, moved: 131.4, saves: 0, unpriced: 0 });
      // (0.01 + 8 × 0.004) × 730 = 30.66, and 2 × (0.01 + 0.004) × 730 = 20.44
      expect(rebuilds?.map(({ image, saves }) => [image, saves])).to.deep.equal([
        ['b-amd64', 30.66],
        ['a-amd64', 20.44],
      ]);
    }
    const { targets } = report({ objects, targets: ['s390x'], prices: memory }).summary;
    expect(targets.s390x?.cost).to.equal(undefined);
  });
});
