import { expect } from 'chai';
import { backoff, systemClock } from '../../src/kit/clock.ts';
import {
  add,
  addAfter,
  close,
  createWorkqueue,
  depth,
  done,
  forget,
  isIdle,
  retry,
  take,
  type Workqueue,
} from '../../src/kube/workqueue.ts';

describe('the work queue', () => {
  let queue: Workqueue;
  beforeEach(() => {
    // With this value every backoff has no length.
    queue = createWorkqueue({ ...systemClock, random: () => -2 });
  });
  afterEach(() => close(queue));

  const takeAll = async (count: number) => {
    const keys: (string | undefined)[] = [];
    for (let taken = 0; taken < count; taken++) keys.push(await take(queue));
    return keys;
  };

  it('gives urgent keys before the backlog, each in its order', async () => {
    add(queue, 'b1', 'backlog');
    add(queue, 'u1', 'urgent');
    add(queue, 'b2', 'backlog');
    add(queue, 'u2', 'urgent');
    expect(await takeAll(4)).to.deep.equal(['u1', 'u2', 'b1', 'b2']);
  });

  it('lets namespaces take turns, so that the pods of one never stand behind all of another', async () => {
    for (let index = 0; index < 5_000; index++) add(queue, `flood/${index}`, 'urgent');
    for (const key of ['bystander/a', 'bystander/b', 'node']) add(queue, key, 'urgent');
    expect(await takeAll(6)).to.deep.equal(['flood/0', 'bystander/a', 'node', 'flood/1', 'bystander/b', 'flood/2']);
  });

  it('holds a key once, and moves it up if it becomes urgent, but never down', async () => {
    add(queue, 'other', 'backlog');
    add(queue, 'k', 'backlog');
    add(queue, 'k', 'backlog');
    add(queue, 'k', 'urgent');
    add(queue, 'k', 'backlog');
    expect(depth(queue)).to.equal(2);
    expect(await takeAll(2)).to.deep.equal(['k', 'other']);
    expect(depth(queue)).to.equal(0);
  });

  it('gives a key to no second worker, but again afterwards', async () => {
    add(queue, 'k', 'urgent');
    await take(queue);
    add(queue, 'k', 'backlog');
    add(queue, 'k', 'urgent');
    expect(depth(queue)).to.equal(0);
    expect(isIdle(queue)).to.equal(false);
    done(queue, 'k', true);
    expect(await take(queue)).to.equal('k');
    done(queue, 'k', true);
    expect(isIdle(queue)).to.equal(true);
  });

  it('keeps a key urgent that was added as urgent while a worker had it, whatever is added after it', async () => {
    add(queue, 'k', 'urgent');
    await take(queue);
    add(queue, 'k', 'urgent');
    add(queue, 'k', 'backlog');
    add(queue, 'other', 'backlog');
    done(queue, 'k', true);
    expect(await takeAll(2)).to.deep.equal(['k', 'other']);
  });

  it('wakes a worker that waits for a key', async () => {
    const [first, second] = [take(queue), take(queue)];
    add(queue, 'a', 'urgent');
    add(queue, 'b', 'backlog');
    expect(await Promise.all([first, second])).to.deep.equal(['a', 'b']);
  });

  it('adds a key later, at the earliest of the requested times', async () => {
    addAfter(queue, 'k', 'urgent', 600_000);
    addAfter(queue, 'k', 'urgent', 1);
    addAfter(queue, 'k', 'urgent', 500_000);
    expect(depth(queue)).to.equal(0);
    expect(await take(queue)).to.equal('k');
  });

  it('retries again and again, however often it fails', async () => {
    add(queue, 'k', 'urgent');
    for (let failure = 0; failure < 40; failure++) {
      expect(await take(queue)).to.equal('k');
      retry(queue, 'k', 'urgent');
      done(queue, 'k', false);
    }
  });

  it('forgets a key: its place and its timers', async () => {
    add(queue, 'gone', 'urgent');
    addAfter(queue, 'gone', 'urgent', 1);
    forget(queue, 'gone');
    addAfter(queue, 'last', 'urgent', 5);
    expect(await take(queue)).to.equal('last');
  });

  it('gives no key once it is closed, not even to a waiting worker', async () => {
    const waiting = take(queue);
    close(queue);
    add(queue, 'k', 'urgent');
    expect([await waiting, await take(queue)]).to.deep.equal([undefined, undefined]);
  });
});

describe('the work queue while the server fails', () => {
  let now: number;
  let timers: { at: number; action: () => void }[];
  let queue: Workqueue;
  beforeEach(() => {
    [now, timers] = [0, []];
    const after = (ms: number, action: () => void) => {
      const timer = { at: now + ms, action };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    };
    queue = createWorkqueue({ ...systemClock, random: () => 0.5, monotonic: () => now, after });
  });
  afterEach(() => close(queue));

  type Attempt = 'server' | 'itself' | 'written' | 'unchanged';

  /** Works until this time. Returns when each key was tried, in seconds. */
  async function workUntil(end: number, attempt: (key: string) => Attempt): Promise<Map<string, number[]>> {
    const tried = new Map<string, number[]>();
    for (; now <= end; now += 100) {
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers.splice(timers.indexOf(timer), 1);
        timer.action();
      }
      while (depth(queue) > 0) {
        const key = (await take(queue)) ?? '';
        tried.set(key, [...(tried.get(key) ?? []), now / 1000]);
        const result = attempt(key);
        if (result === 'server' || result === 'itself') retry(queue, key, 'urgent', 0, result === 'server');
        done(queue, key, result === 'written' || result === 'unchanged', result === 'written');
      }
    }
    return tried;
  }
  const longestWait = (times: readonly number[] = []) =>
    Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? 0)));

  it('retries no earlier than requested', async () => {
    retry(queue, 'asked to wait', 'urgent', 60_000);
    retry(queue, 'first', 'urgent');
    const tried = await workUntil(61_000, () => 'unchanged');
    expect(Object.fromEntries(tried)).to.deep.equal({ first: [0.1], 'asked to wait': [60] });
  });

  it('tries one of the keys every few seconds, and the others once it works for that one', async () => {
    for (const key of ['a', 'b', 'c', 'own']) add(queue, key, 'urgent');
    const during = await workUntil(200_000, (key) => (key === 'own' ? 'itself' : 'server'));
    expect(longestWait(during.get('a'))).to.be.within(2.9, 3.1);
    for (const key of ['b', 'c', 'own']) expect(longestWait(during.get(key)), key).to.be.above(50);
    const then = await workUntil(203_200, (key) => (key === 'own' ? 'itself' : 'written'));
    expect([...then.keys()]).to.have.members(['a', 'b', 'c']);
  });

  it('adds a key once only because of others, until it succeeds itself', async () => {
    add(queue, 'stubborn', 'urgent');
    await workUntil(200_000, () => 'server');
    for (let count = 0; count < 40; count++) {
      add(queue, 'other', 'urgent');
      const more = await workUntil(now + 1_000, (key) => (key === 'stubborn' ? 'server' : 'written'));
      expect(more.get('stubborn') ?? [], String(count)).to.have.lengthOf(count === 0 ? 1 : 0);
    }
  });

  it('learns nothing from a key that needed no write', async () => {
    for (const key of ['a', 'b']) add(queue, key, 'urgent');
    await workUntil(200_000, () => 'server');
    add(queue, 'other', 'urgent');
    expect((await workUntil(200_200, (key) => (key === 'other' ? 'unchanged' : 'server'))).get('b')).to.equal(
      undefined,
    );
  });
});

describe('backoff', () => {
  const rows: readonly (readonly [attempt: number, chance: number, ms: number])[] = [
    [0, 0.5, 100],
    [1, 0.5, 200],
    [5, 0.5, 3_200],
    [0, 0, 80],
    [0, 1, 120],
    [10, 0.5, 60_000],
    [5_000, 0.5, 60_000],
  ];
  for (const [attempt, chance, ms] of rows) {
    it(`is ${ms} ms after ${attempt} attempts, at chance ${chance}`, () => {
      expect(backoff(attempt, 100, 60_000, () => chance)).to.be.closeTo(ms, 1e-6);
    });
  }
});
