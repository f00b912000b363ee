import { expect } from 'chai';
import { createWatches } from '../../src/controllers/watches.ts';
import { systemClock } from '../../src/kit/clock.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
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
    async request(_verb, _path, { reader } = {}) {
      const answer = { kind: 'PodList', metadata: { resourceVersion: '1' }, items: pods };
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

  it('keep next to nothing of each, and all of the others', async () => {
    const client = clientOf([...FLOODS, SMALL]);
    const watches = createWatches({ client, clock: systemClock, kinds: new Set(['pods']) });
    void watches.run(end.signal);
    await watches.whenSynced();
    const kept = [...watches.pods.store.values()];
    expect(kept).to.have.length(FLOODS.length + 1);
    expect(kept.filter(({ tooLarge }) => tooLarge !== undefined)).to.have.length(FLOODS.length);
    expect(JSON.stringify(kept).length).to.be.below(FLOODS.length * 600);
    expect(watches.pods.store.get('shop/web')?.labels).to.deep.equal({ app: 'web' });
  });

  it('keep next to nothing of each large DaemonSet', async () => {
    const client = clientOf(FLOODS.map((pod) => ({ ...pod, spec: { template: { metadata: pod.metadata, ...pod } } })));
    const watches = createWatches({ client, clock: systemClock, kinds: new Set(['daemonsets']) });
    void watches.run(end.signal);
    await watches.whenSynced();
    const kept = [...watches.daemonSets.store.values()];
    expect(kept).to.have.length(FLOODS.length);
    expect(kept.filter(({ template }) => template.tooLarge !== undefined)).to.have.length(FLOODS.length);
    expect(JSON.stringify(kept).length).to.be.below(FLOODS.length * 1_000);
  });
});
