import { expect } from 'chai';
import { createMetrics } from '../../src/observability/metrics.ts';

const NOTHING = {
  queueDepths: () => ({}),
  nodes: () => ({}),
  pods: () => ({}),
  oldestWaitingPodSeconds: () => 0,
  unresolvableImages: () => 0,
  leader: () => true,
  gatedPods: () => 0,
  taintedNodes: () => ({}),
  unmanagedTaints: () => 0,
  contestedObjects: () => 0,
  wrongNodePods: () => 0,
  uninitializedNodes: () => 0,
  certificateExpirySeconds: () => undefined,
};

describe('the metrics', () => {
  it('count answers of registries by statuses that there are, and all others as one', async () => {
    const metrics = createMetrics('test');
    const codes = ['200', '429', 'timeout', '299', '799', '999'];
    for (const code of codes) metrics.registryAnswered({ registry: 'r.test', method: 'GET', code, seconds: 1 });
    const { text } = await metrics.render(NOTHING);
    const series = [...text.matchAll(/^archaware_registry_requests_total\{.*code="(\w+)"\} (\d+)$/gm)];
    expect(series.map(([, code, count]) => `${code} ${count}`)).to.deep.equal([
      '200 1',
      '429 1',
      'timeout 1',
      'other 3',
    ]);
  });

  it('tell the first hundred pools apart, and count all others as one', async () => {
    const metrics = createMetrics('test');
    for (let index = 0; index < 103; index += 1) metrics.nodeJoinedUntainted(`pool-${index}`);
    metrics.nodeJoinedUntainted('pool-7');
    const { text } = await metrics.render(NOTHING);
    const series = [...text.matchAll(/^archaware_nodes_joined_untainted_total\{pool="(.*)"\} (\d+)$/gm)];
    const counts = new Map(series.map(([, pool, count]) => [pool, count]));
    expect([counts.size, counts.get('pool-7'), counts.get('other')]).to.deep.equal([101, '2', '3']);
  });
});
