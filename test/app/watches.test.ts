import { expect } from 'chai';
import { createWatches } from '../../src/app/watches.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { createSetClock } from '../kube/cluster.ts';

describe('the watch of pods', () => {
  /** A pod of generation 2: archaware's patch made it before the backup was restored, somebody else's afterwards. */
  const pod = (resourceVersion: string, image: string) => ({
    metadata: { namespace: 'shop', name: 'web', uid: 'u', generation: 2, resourceVersion },
    spec: { containers: [{ image }] },
  });

  it('believes nothing that was read before etcd was restored, also where uid and generation are the same', async () => {
    const lists = [
      { metadata: { resourceVersion: '500' }, items: [pod('400', 'lost')] },
      { metadata: { resourceVersion: '330' }, items: [pod('320', 'present')] },
    ];
    let seen = () => {};
    const restored = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const end = new AbortController();
    const client: ApiClient = {
      host: 'api.test',
      addresses: () => new Set(),
      request: async () => lists.shift(),
      async watch(_path, { signal }) {
        if (lists.length > 0) throw new ApiError(410, { reason: 'Expired' }, 'watch');
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      close: async () => undefined,
    };
    const watches = createWatches({
      client,
      clock: createSetClock(),
      kinds: new Set(['pods']),
      onRestart: () => undefined,
    });
    const resets: (true | undefined)[] = [];
    watches.listeners.pod = ({ isReset }) => {
      resets.push(isReset);
      if (isReset) seen();
    };
    const running = watches.run(end.signal);
    await restored;
    expect(watches.pods.store.get('shop/web')?.images.map(({ image }) => image)).to.deep.equal(['present']);
    expect(resets).to.deep.equal([undefined, true]);
    end.abort();
    await running;
  });
});
