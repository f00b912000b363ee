import { expect } from 'chai';
import { createMetrics } from '../../src/observability/metrics.ts';

const NOTHING = {
  queueDepths: () => ({}),
  nodes: () => ({}),
  pods: async () => ({}),
  oldestWaitingPodSeconds: async () => 0,
  unresolvableImages: () => 0,
  leader: () => true,
  gatedPods: async () => 0,
  taintedNodes: () => ({}),
  safetyNets: () => ({}),
  publishedImages: () => 0,
  contestedObjects: () => 0,
  taintsHeldBack: () => 0,
  rolloutStopped: () => 0,
  wrongNodePods: () => 0,
  readiness: async () => ({ pods: [], images: [] }),
  certificateExpirySeconds: () => undefined,
};

describe('the metrics', () => {
  it('count answers of registries by statuses that there are, and all others as one', async () => {
    const metrics = createMetrics('test', () => 0);
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
    const metrics = createMetrics('test', () => 0);
    for (let index = 0; index < 103; index += 1) metrics.nodeJoinedUntainted(`pool-${index}`);
    metrics.nodeJoinedUntainted('pool-7');
    const { text } = await metrics.render(NOTHING);
    const series = [...text.matchAll(/^archaware_nodes_joined_untainted_total\{pool="(.*)"\} (\d+)$/gm)];
    const counts = new Map(series.map(([, pool, count]) => [pool, count]));
    expect([counts.size, counts.get('pool-7'), counts.get('other')]).to.deep.equal([101, '2', '3']);
  });

  it('give up every series of a registry whose label goes to another, and none of one that is used', async () => {
    let time = 0;
    const metrics = createMetrics('test', () => time);
    const ask = (registry: string, code: string) => {
      metrics.registryAnswered({ registry, method: 'GET', code, seconds: 1 });
      metrics.rateLimitTold({ registry, limit: 100, remaining: 1 });
    };
    for (let index = 0; index < 100; index += 1) ask(`r${index}.test`, '200');
    ask('r0.test', '404');
    ask('late.test', '200');
    time += 3_600_000;
    ask('r0.test', '200');
    ask('later.test', '200');
    const { text } = await metrics.render(NOTHING);
    const of = (host: string) => text.split('\n').filter((line) => line.includes(`registry="${host}"`));
    expect(of('r1.test')).to.deep.equal([]);
    expect(of('later.test')).to.have.length(of('r2.test').length);
    expect(of('r0.test')).to.include.members([
      'archaware_registry_requests_total{registry="r0.test",method="GET",code="200"} 2',
      'archaware_registry_requests_total{registry="r0.test",method="GET",code="404"} 1',
    ]);
    expect(of('late.test')).to.deep.equal([]);
    expect(of('other')).to.include('archaware_registry_requests_total{registry="other",method="GET",code="200"} 1');
    expect(new Set(text.match(/registry="[^"]+"/g)).size).to.equal(101);
  });

  it('forget a value of a label that is measured no longer', async () => {
    const metrics = createMetrics('test', () => 0);
    await metrics.render({ ...NOTHING, queueDepths: () => ({ pod: 3 }) });
    expect((await metrics.render(NOTHING)).text).not.to.include('archaware_workqueue_depth{');
  });

  it('say whether a safety net holds, and nothing about one that was not tried', async () => {
    const metrics = createMetrics('test', () => 0);
    const holds = async (daemonsets: boolean | undefined) => {
      const { text } = await metrics.render({ ...NOTHING, safetyNets: () => ({ daemonsets }) });
      return /^archaware_safety_net_holds\{net="daemonsets"\} (\S+)$/m.exec(text)?.[1];
    };
    expect([await holds(true), await holds(false), await holds(undefined)]).to.deep.equal(['1', '0', 'Nan']);
  });
});
