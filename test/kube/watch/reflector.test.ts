import { expect } from 'chai';
import type { Clock } from '../../../src/kit/clock.ts';
import type { ApiClient } from '../../../src/kube/api-client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { StoreChange } from '../../../src/kube/watch/collection.ts';
import { createReflector, type Reflector, type ReflectorOptions } from '../../../src/kube/watch/reflector.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';
import { at, type JsonObject, text } from '../../simulator/json.ts';
import { createSetClock, type Server, startServer } from '../cluster.ts';

const PODS = '/api/v1/namespaces/default/pods';

describe('the reflector', () => {
  let server: Server;
  let end: AbortController;
  let changes: string[];
  let restarts: string[];
  let ended: Promise<void>;
  beforeEach(async () => {
    server = await startServer();
    [end, changes, restarts, ended] = [new AbortController(), [], [], Promise.resolve()];
  });
  afterEach(async () => {
    end.abort();
    await ended;
    await server.stop();
  });

  const told = ({ key, now, before }: StoreChange<Pod>) =>
    `${now === undefined ? 'gone' : before === undefined ? 'new' : 'changed'} ${key.replace('default/', '')}`;
  function reflect(given: Partial<ReflectorOptions<Pod>> = {}): Reflector<Pod> {
    const reflector = createReflector<Pod>({
      ...{ client: server.client, clock: createSetClock(), path: '/api/v1/pods', idleMs: 60_000 },
      read: (object) => readPod(object),
      keyOf: ({ namespace, name }) => `${namespace}/${name}`,
      onChange: (change: StoreChange<Pod>) => void changes.push(told(change)),
      onRestart: (reason) => void restarts.push(reason),
      ...given,
    });
    ended = reflector.run(end.signal);
    return reflector;
  }
  /** With this clock every watch appears to last for seconds. */
  const slow = (): Clock => {
    let now = 0;
    return { ...createSetClock(), monotonic: () => (now += 2_000) };
  };
  const pod = (name: string) => server.cluster.createPod({ name });
  const remove = (name: string) => server.cluster.request('DELETE', `${PODS}/${name}`, { gracePeriodSeconds: 0 });
  const lists = () => server.asked('/api/v1/pods?limit').length;
  const watches = () => server.asked('/api/v1/pods?watch').length;
  const until = (what: string, condition: () => boolean) => server.cluster.waitFor(what, async () => condition());
  const watching = () => until('an open watch', () => server.cluster.openWatches() === 1);
  const seen = (change: string) => until(change, () => changes.includes(change));

  it('lists page by page, then watches from there', async () => {
    await Promise.all(Array.from({ length: 501 }, (_, index) => pod(`p${index}`)));
    const reflector = reflect();
    await reflector.whenSynced;
    expect(reflector.synced()).to.equal(true);
    expect(reflector.store.size).to.equal(501);
    expect(lists()).to.equal(2);
    await watching();
    await pod('later');
    await seen('new later');
    expect([lists(), watches()]).to.deep.equal([2, 1]);
  });

  it('reports what is new, changed and deleted', async () => {
    reflect();
    await watching();
    await pod('a');
    await server.cluster.request('PATCH', `${PODS}/a`, { metadata: { labels: { x: 'y' } } });
    await remove('a');
    await seen('gone a');
    expect(changes).to.deep.equal(['new a', 'changed a', 'gone a']);
  });

  it('asks for bookmarks, and goes on from the last one', async () => {
    await server.stop();
    server = await startServer({ bookmarkPeriodMs: 10 });
    reflect({ clock: slow() });
    await watching();
    const from = () =>
      Number(new URL(`http://x${server.asked('pods?watch').at(-1)?.slice(4)}`).searchParams.get('resourceVersion'));
    const first = from();
    const other = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } };
    const created = await server.cluster.request('POST', '/api/v1/namespaces', other);
    const version = Number(text(at(created.body, 'metadata', 'resourceVersion')));
    // A watch that begins after the bookmark proves that the bookmark was read.
    await until('a watch from the bookmark', () => {
      server.cluster.faults.closeWatches();
      return from() >= version;
    });
    expect(first).to.be.lessThan(version);
    expect(lists()).to.equal(1);
  });

  it('lists again after a 410 in the stream', async () => {
    reflect();
    await watching();
    server.cluster.faults.expireWatches();
    await until('a second list', () => lists() === 2);
    await watching();
    expect(restarts).to.deep.equal(['expired']);
  });

  it('removes objects that were deleted while it was not watching', async () => {
    await pod('stays');
    await pod('goes');
    const reflector = reflect();
    await watching();
    server.cluster.faults.stallWatches();
    await remove('goes');
    server.cluster.faults.stallWatches(false);
    server.cluster.faults.expireWatches();
    await seen('gone goes');
    expect([...reflector.store.keys()]).to.deep.equal(['default/stays']);
  });

  it('does not ask in a tight loop if the server closes each watch at once', async () => {
    const clock = createHandClock();
    reflect({ clock });
    for (let round = 1; round <= 4; round++) {
      await watching();
      server.cluster.faults.closeWatches();
      await until('it to wait', () => clock.waiting === 1);
      expect(watches()).to.equal(round);
      await clock.advance(250 * 2 ** (round - 1) - 1);
      expect(clock.waiting).to.equal(1);
      await clock.advance(1);
    }
  });

  it("ignores an event that is older than the program's own write", async () => {
    const reflector = reflect();
    await watching();
    server.cluster.faults.stallWatches();
    const created = await pod('a');
    const patched = await server.cluster.request('PATCH', `${PODS}/a`, { metadata: { labels: { written: 'yes' } } });
    // As a controller stores the answer to its patch, before the events of the creation and of the patch arrive.
    const written = readPod({ ...created, metadata: at(patched.body, 'metadata') });
    reflector.store.put('default/a', written);
    server.cluster.faults.stallWatches(false);
    server.cluster.faults.closeWatches();
    await pod('b');
    await seen('new b');
    expect(changes.filter((change) => change.endsWith(' a'))).to.deep.equal(['changed a']);
    expect(reflector.store.get('default/a')?.labels).to.deep.equal({ written: 'yes' });
  });

  it('accepts what a restored etcd has, even if its versions are older', async () => {
    let restored = false;
    const pod = (version: number) => ({ metadata: { name: 'p', uid: 'u', resourceVersion: String(version) } });
    const client: ApiClient = {
      ...server.client,
      async request() {
        return { metadata: { resourceVersion: restored ? '500' : '1000' }, items: [pod(restored ? 400 : 900)] };
      },
      async watch() {
        restored = true;
        throw new ApiError(410, { reason: 'Expired' }, 'watch');
      },
    };
    const reads: boolean[] = [];
    const read = (object: JsonObject, isReset: boolean) => {
      reads.push(isReset);
      return readPod(object);
    };
    const reflector = reflect({ client, read });
    await until('the version of the backup', () => reflector.store.get('/p')?.resourceVersion === '400');
    expect(reads.slice(0, 2), 'nothing read before counts').to.deep.equal([false, true]);
  });

  it('ends at once, whether it watches or waits', async () => {
    reflect();
    await watching();
    end.abort();
    await ended;
    await until('the watch to be closed', () => server.cluster.openWatches() === 0);
  });
});
