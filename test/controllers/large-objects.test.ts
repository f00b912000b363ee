import { expect } from 'chai';
import { createWatches } from '../../src/controllers/watches.ts';
import { systemClock } from '../../src/kit/clock.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { isStub } from '../../src/placement/objects/large.ts';
import { manyImages, manyLabels, manyTolerations } from '../support/large-objects.ts';

const EACH = 7;
const FLOODS = [manyTolerations, manyLabels, manyImages].flatMap((of, flood) =>
  Array.from({ length: EACH }, (_, index): JsonObject => {
    const { labels, spec } = of(index);
    const managedFields = [{ manager: 'kubectl', fieldsV1: { 'f:metadata': { 'f:labels': {} } } }];
    const name = `large-${flood}-${index}`;
    return {
      metadata: { name, namespace: 'tenant', uid: name, resourceVersion: '1', generation: 1, labels, managedFields },
      spec,
      status: { phase: 'Pending' },
    };
  }),
);
const SMALL: JsonObject = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', generation: 1, labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'app' }] },
};

/** An API server with these pods, whose watches say nothing. */
function clientOf(pods: readonly JsonObject[]): ApiClient {
  return {
    host: 'server.test',
    addresses: () => new Set(),
    async request(verb, path, { reader } = {}) {
      const [, name] = /\/pods\/(.+)$/.exec(path) ?? [];
      const found = pods.find(({ metadata }) => JSON.stringify(metadata).startsWith(`{"name":"${name}"`));
      const answer =
        verb === 'get'
          ? { kind: 'Pod', ...found }
          : { kind: 'PodList', metadata: { resourceVersion: '1' }, items: pods };
      if (reader === undefined) return answer;
      const body = reader();
      body.take(Buffer.from(JSON.stringify(answer)));
      return body.end();
    },
    watch: (_, { signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
    async close() {},
  };
}

describe('the watches beside objects of one tenant that are as large as the API server takes them', () => {
  const end = new AbortController();
  after(() => end.abort());

  it('keep a few KB of each, all of the others, and read a large one when its turn comes', async () => {
    const client = clientOf([...FLOODS, SMALL]);
    const watches = createWatches({ client, clock: systemClock, kinds: new Set(['pods']) });
    void watches.run(end.signal);
    await watches.whenSynced();
    const kept = [...watches.pods.store.values()];
    expect(kept).to.have.length(FLOODS.length + 1);
    expect(kept.filter(isStub)).to.have.length(FLOODS.length);
    expect(JSON.stringify(kept).length).to.be.below(FLOODS.length * 1_000);
    expect(watches.pods.store.get('shop/web')?.labels).to.deep.equal({ app: 'web' });
    const stub = watches.pods.store.get('tenant/large-0-6');
    const whole = stub && (await watches.whole.pod(stub, end.signal));
    expect(whole?.tolerations).to.have.length(10_000);
    expect(whole?.large).to.equal(stub?.large);
    const gone = stub && (await watches.whole.pod({ ...stub, uid: 'another' }, end.signal));
    expect(gone).to.equal(undefined);
  });

  it('keep a few KB of each large DaemonSet', async () => {
    const client = clientOf(FLOODS.map((pod) => ({ ...pod, spec: { template: { metadata: pod.metadata, ...pod } } })));
    const watches = createWatches({ client, clock: systemClock, kinds: new Set(['daemonsets']) });
    void watches.run(end.signal);
    await watches.whenSynced();
    const kept = [...watches.daemonSets.store.values()];
    expect(kept).to.have.length(FLOODS.length);
    expect(kept.filter(({ isLarge }) => isLarge)).to.have.length(FLOODS.length);
    expect(JSON.stringify(kept).length).to.be.below(FLOODS.length * 1_000);
  });

  it('keep all of them for a command', async () => {
    const client = clientOf(FLOODS.slice(0, 3));
    const kinds = new Set(['pods'] as const);
    const watches = createWatches({ client, clock: systemClock, kinds, keepsAll: true });
    void watches.run(end.signal);
    await watches.whenSynced();
    expect([...watches.pods.store.values()].map(({ tolerations = [] }) => tolerations.length)).to.deep.equal([
      10_000, 10_000, 10_000,
    ]);
  });
});
