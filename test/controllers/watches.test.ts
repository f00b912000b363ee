import { expect } from 'chai';
import { createWatches } from '../../src/controllers/watches.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { createSetClock } from '../kube/cluster.ts';
import { clientOf } from '../support/client-of.ts';

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
    const end = new AbortController();
    const client = clientOf({
      request: async () => lists.shift(),
      async watch(_path, { signal }) {
        if (lists.length > 0) throw new ApiError(410, { reason: 'Expired' }, 'watch');
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    });
    const watches = createWatches({ client, clock: createSetClock(), kinds: new Set(['pods']) });
    const restored = new Promise<void>((resolve) => {
      watches.listeners.pod = ({ before }) => before && resolve();
    });
    const running = watches.run(end.signal);
    await restored;
    expect(watches.pods.store.get('shop/web')?.images.map(({ image }) => image)).to.deep.equal(['present']);
    end.abort();
    await running;
  });
});

describe('the watch of nodes', () => {
  const node = (name: string, architecture: string) => ({
    metadata: { name, uid: name, resourceVersion: '2' },
    status: { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] },
  });

  it('counts the architectures of the first list at once, and that of a later node a minute after it joined', async () => {
    const end = new AbortController();
    const clock = createSetClock();
    const client = clientOf({
      request: async () => ({ metadata: { resourceVersion: '1' }, items: [node('old', 'amd64')] }),
      async watch(_path, { signal, onOpen, onPiece }) {
        onOpen();
        onPiece(Buffer.from(`${JSON.stringify({ type: 'ADDED', object: node('new', 'arm64') })}\n`));
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
    });
    const watches = createWatches({ client, clock, kinds: new Set(['nodes']) });
    const joined = new Promise<void>((resolve) => {
      watches.listeners.node = ({ key }) => key === 'new' && resolve();
    });
    const running = watches.run(end.signal);
    await joined;
    expect(watches.witnesses.architectures()).to.deep.equal(['amd64']);
    clock.now.monotonic = 60_000;
    expect(watches.witnesses.architectures()).to.deep.equal(['amd64', 'arm64']);
    end.abort();
    await running;
  });
});
