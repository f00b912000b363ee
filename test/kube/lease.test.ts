import { expect } from 'chai';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { cleanerIdentity, createLease, type LeaseOptions, microTime } from '../../src/kube/lease.ts';
import { at } from '../simulator/json.ts';
import { createSetClock, type Server, type SetClock, startServer } from './cluster.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/default/leases/l';
const never = new AbortController().signal;

describe('the lease', () => {
  let server: Server;
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(() => server.stop());

  function holder(identity: string, clock: SetClock = createSetClock(), more: Partial<LeaseOptions> = {}) {
    const client: ApiClient = more.client ?? server.client;
    const given = { namespace: 'default', name: 'l', identity, durationMs: 15_000, clock };
    return { ...createLease({ ...given, ...more, client }), clock };
  }
  const record = async (field: string) => at((await server.cluster.request('GET', LEASE)).body, 'spec', field);
  const writes = () => server.asked('/leases').filter((line) => !line.startsWith('GET')).length;

  /** The holder renews the Lease two seconds later. */
  async function renew({ clock, tryAcquire }: ReturnType<typeof holder>): Promise<void> {
    clock.now.wall += 2_000;
    await tryAcquire(never);
  }

  /** Another replica sees the holder silent for the whole duration, and takes the Lease. */
  async function takeOver({ clock, tryAcquire }: ReturnType<typeof holder>): Promise<void> {
    await tryAcquire(never);
    clock.now.monotonic += 15_001;
    await tryAcquire(never);
  }

  /** One look at the holder. */
  async function look({ follow, clock }: ReturnType<typeof holder>): Promise<void> {
    const once = new AbortController();
    const [looking, before] = [follow(once.signal), clock.delays.length];
    while (clock.delays.length === before) await new Promise(setImmediate);
    once.abort();
    await looking;
  }

  it('is held by one of two', async () => {
    const [a, b] = [holder('a'), holder('b')];
    expect(await a.tryAcquire(never)).to.deep.equal({ held: true });
    expect(await b.tryAcquire(never)).to.deep.equal({ held: false, holder: 'a', alive: false });
    expect([a.mayWrite(), b.mayWrite()]).to.deep.equal([true, false]);
    expect(await record('holderIdentity')).to.equal('a');
  });

  it('is held for any duration', async () => {
    for (const durationMs of [2_000, 2_001, 15_000, 600_000]) {
      const lease = holder('a', createSetClock(), { durationMs });
      expect(await lease.tryAcquire(never), String(durationMs)).to.deep.equal({ held: true });
    }
  });

  it('is created once if two try at the same time', async () => {
    const all = ['a', 'b', 'c'].map((name) => holder(name));
    const attempts = await Promise.all(all.map((lease) => lease.tryAcquire(never)));
    expect(attempts.filter(({ held }) => held)).to.have.lengthOf(1);
  });

  it('distinguishes a holder that renews from one that is only recorded', async () => {
    const [a, b] = [holder('a'), holder('b')];
    await a.tryAcquire(never);
    await b.tryAcquire(never);
    await renew(a);
    expect(await b.tryAcquire(never)).to.deep.equal({ held: false, holder: 'a', alive: true });
  });

  it('is taken over after its duration, counted from what the other saw and not from what is written', async () => {
    const [a, b] = [holder('a'), holder('b')];
    a.clock.now.wall = 0;
    await a.tryAcquire(never);
    expect(await b.tryAcquire(never)).to.have.property('held', false);
    b.clock.now.monotonic += 15_000;
    expect(await b.tryAcquire(never)).to.have.property('held', false);
    b.clock.now.monotonic += 1;
    expect(await b.tryAcquire(never)).to.deep.equal({ held: true });
    expect(await record('leaseTransitions')).to.equal(1);
    expect(await a.tryAcquire(never)).to.include({ held: false, holder: 'b' });
  });

  it('has a live leader for others once they have seen it renewing, until its duration is over', async () => {
    const [a, b] = [holder('a'), holder('b')];
    expect([a.hasLeader(), b.hasLeader()]).to.deep.equal([false, false]);
    await a.tryAcquire(never);
    await b.tryAcquire(never);
    // The record may be that of a holder that died long ago.
    expect([a.hasLeader(), b.hasLeader()]).to.deep.equal([true, false]);
    await renew(a);
    await b.tryAcquire(never);
    b.clock.now.monotonic += 15_000;
    expect(b.hasLeader()).to.equal(true);
    b.clock.now.monotonic += 1;
    expect(b.hasLeader()).to.equal(false);
  });

  it('counts as led for a moment after a release, and then because of the replica that was seen to take it', async () => {
    const [a, b] = [holder('a'), holder('b')];
    await a.tryAcquire(never);
    await a.release(never);
    expect(a.hasLeader()).to.equal(true);
    a.clock.now.monotonic += 4_000;
    expect(a.hasLeader()).to.equal(false);
    await look(a);
    expect(a.hasLeader()).to.equal(false);
    await b.tryAcquire(never);
    await look(a);
    expect(a.hasLeader()).to.equal(true);
    expect(await record('holderIdentity')).to.equal('b');
  });

  it('counts as led for a moment after another replica was seen to release it, but not after clean', async () => {
    for (const [identity, isLed] of [
      ['a', true],
      [cleanerIdentity('host'), false],
    ] as const) {
      const [a, b] = [holder(identity), holder('b')];
      await a.tryAcquire(never);
      await look(b);
      await a.release(never);
      await look(b);
      expect(b.hasLeader(), identity).to.equal(isLed);
      b.clock.now.monotonic += 4_000;
      expect(b.hasLeader(), identity).to.equal(false);
    }
  });

  it('has introduced its leader once that one was seen renewing, or after three retries without any', async () => {
    const [a, b, c] = [holder('a'), holder('b'), holder('c')];
    await a.tryAcquire(never);
    await look(b);
    await look(c);
    expect([a.hasSeenLeader(), b.hasSeenLeader(), c.hasSeenLeader()]).to.deep.equal([true, false, false]);
    await renew(a);
    await look(b);
    c.clock.now.monotonic += 6_001;
    expect([b.hasSeenLeader(), c.hasSeenLeader()]).to.deep.equal([true, true]);
    b.clock.now.monotonic += 60_000;
    expect([b.hasLeader(), b.hasSeenLeader()]).to.deep.equal([false, true]);
  });

  it('carries the label by which clean finds it, and keeps the labels of others', async () => {
    const a = holder('a');
    await a.tryAcquire(never);
    const labels = async () => at((await server.cluster.request('GET', LEASE)).body, 'metadata', 'labels');
    expect(await labels()).to.deep.equal({ 'app.kubernetes.io/name': 'archaware-controller' });
    await server.cluster.request('PATCH', LEASE, {
      metadata: { labels: { 'app.kubernetes.io/name': null, team: 'x' } },
    });
    await a.tryAcquire(never);
    expect(await labels()).to.deep.equal({ 'app.kubernetes.io/name': 'archaware-controller', team: 'x' });
  });

  it('has no leader while clean holds it', async () => {
    const [a, b] = [holder(cleanerIdentity('host')), holder('b')];
    for (let time = 0; time < 2; time++) {
      await renew(a);
      await b.tryAcquire(never);
    }
    expect(b.hasLeader()).to.equal(false);
  });

  it('counts again from each renewal that is seen', async () => {
    const [a, b] = [holder('a'), holder('b')];
    for (let second = 0; second < 60; second += 10) {
      a.clock.now.wall += 10_000;
      await a.tryAcquire(never);
      b.clock.now.monotonic += 10_000;
      expect(await b.tryAcquire(never)).to.have.property('held', false);
    }
  });

  for (const [which, late] of [
    ['monotonic', { monotonic: 10_000, wall: 0 }],
    ['wall', { monotonic: 0, wall: 10_000 }],
  ] as const) {
    it(`is no longer fresh after two thirds of its duration by the ${which} clock`, async () => {
      const a = holder('a');
      const { monotonic, wall } = a.clock.now;
      await a.tryAcquire(never);
      a.clock.now = { monotonic: monotonic + late.monotonic, wall: wall + late.wall };
      expect(a.mayWrite()).to.equal(false);
      a.clock.now = { monotonic: monotonic + 9_999, wall: wall + 9_999 };
      expect(a.mayWrite()).to.equal(true);
    });
  }

  it('counts freshness from when the renewal was sent, not from its answer', async () => {
    const clock = createSetClock();
    const slow: ApiClient = {
      ...server.client,
      async request(...args) {
        clock.now.monotonic += 6_000;
        return server.client.request(...args);
      },
    };
    const a = holder('a', clock, { client: slow });
    expect(await a.tryAcquire(never)).to.deep.equal({ held: true });
    expect(a.mayWrite()).to.equal(false);
  });

  it('is not renewed any more by a holder that was paused for too long', async () => {
    const a = holder('a');
    a.clock.delay = async () => {
      a.clock.now.monotonic += 60_000;
    };
    await a.tryAcquire(never);
    const before = writes();
    await a.keep(never);
    expect([a.mayWrite(), writes()]).to.deep.equal([false, before]);
  });

  it('is lost at once if another replica holds it', async () => {
    const [a, b] = [holder('a'), holder('b')];
    await a.tryAcquire(never);
    await takeOver(b);
    await a.keep(never);
    expect([a.mayWrite(), b.mayWrite()]).to.deep.equal([false, true]);
  });

  it('survives failed renewals, and reports them', async () => {
    const errors: unknown[] = [];
    const end = new AbortController();
    const a = holder('a', undefined, {
      onError(error) {
        errors.push(error);
        if (errors.length === 2) end.abort();
      },
    });
    await a.tryAcquire(never);
    server.cluster.faults.inject({ method: 'PUT', times: 1, status: 500 });
    server.cluster.faults.inject({ method: 'PUT', times: 1, reset: true });
    await a.keep(end.signal);
    expect(errors.map(String)).to.have.lengthOf(2);
    expect(a.mayWrite()).to.equal(true);
  });

  it('tries again at once after an attempt without an answer, and says when one is answered again', async () => {
    const [clock, end] = [createSetClock(), new AbortController()];
    let [isDead, giveUp, answered] = [false, () => {}, 0];
    clock.after = (_, action) => {
      giveUp = action;
      return () => {};
    };
    const client: ApiClient = {
      ...server.client,
      request(verb, path, options) {
        if (!isDead) return server.client.request(verb, path, options);
        isDead = false;
        return new Promise((_, reject) => {
          options?.signal?.addEventListener('abort', () => reject(options.signal?.reason));
          giveUp();
        });
      },
    };
    const onAnswered = () => {
      answered++;
      end.abort();
    };
    const a = holder('a', clock, { client, onAnswered });
    await a.acquire(never);
    isDead = true;
    await a.keep(end.signal);
    expect([answered, clock.delays]).to.deep.equal([1, [2_000]]);
  });

  it('says whether its holder can release pods, and keeps the annotations of others', async () => {
    let fails = true;
    const [a, b] = [holder('a', undefined, { cannotRelease: () => fails }), holder('b')];
    await a.tryAcquire(never);
    await server.cluster.request('PATCH', LEASE, { metadata: { annotations: { theirs: 'x' } } });
    const look = async () => {
      await renew(a);
      await b.tryAcquire(never);
      return [a.canRelease(), b.canRelease()];
    };
    expect([b.canRelease(), await look()]).to.deep.equal([true, [false, false]]);
    fails = false;
    expect(await look()).to.deep.equal([true, true]);
    const { body } = await server.cluster.request('GET', LEASE);
    expect(at(body, 'metadata', 'annotations')).to.deep.equal({ theirs: 'x' });
  });

  it('waits for the lease until it is free, or the signal aborts', async () => {
    const [a, end] = [holder('a'), new AbortController()];
    await a.tryAcquire(never);
    const b = holder('b');
    const delay = b.clock.delay;
    b.clock.delay = async (ms, signal) => {
      if (b.clock.delays.length === 3) end.abort();
      return delay(ms, signal);
    };
    expect(await b.acquire(end.signal)).to.equal(false);
    await a.release(never);
    b.clock.delay = async (ms) => {
      b.clock.now.monotonic += ms;
    };
    expect(await b.acquire(never)).to.equal(true);
  });

  it('is released without a holder and with a duration of one second', async () => {
    const [a, b] = [holder('a'), holder('b')];
    await a.tryAcquire(never);
    await a.release(never);
    expect([(await record('holderIdentity')) ?? '', await record('leaseDurationSeconds')]).to.deep.equal(['', 1]);
    expect(a.mayWrite()).to.equal(false);
    expect(await b.tryAcquire(never)).to.deep.equal({ held: true });
  });

  it('is released even if the answer to taking it was never seen', async () => {
    const a = holder('a');
    server.cluster.faults.inject({ method: 'POST', path: /leases/, times: 1, loseAnswer: true });
    let failed = false;
    await a.tryAcquire(never).catch(() => {
      failed = true;
    });
    expect([failed, a.mayWrite(), await record('holderIdentity')]).to.deep.equal([true, false, 'a']);
    await a.release(never);
    expect(await record('holderIdentity')).to.equal('');
  });

  it('is not released by a replica that does not hold it', async () => {
    const [a, b] = [holder('a'), holder('b')];
    await b.release(never);
    await a.tryAcquire(never);
    await takeOver(b);
    await a.release(never);
    expect(await record('holderIdentity')).to.equal('b');
  });

  it('writes times with six digits after the second', () => {
    expect(microTime(Date.UTC(2030, 0, 2, 3, 4, 5, 6))).to.equal('2030-01-02T03:04:05.006000Z');
  });
});
