import { expect } from 'chai';
import { backoff, systemClock } from '../../src/kit/clock.ts';
import { createWorkqueue, type Workqueue } from '../../src/kube/workqueue.ts';

describe('the work queue', () => {
  let queue: Workqueue;
  beforeEach(() => {
    // With this value every backoff has no length.
    queue = createWorkqueue({ ...systemClock, random: () => -2 });
  });
  afterEach(() => queue.close());

  const takeAll = async (count: number) => {
    const keys: (string | undefined)[] = [];
    for (let taken = 0; taken < count; taken++) keys.push(await queue.take());
    return keys;
  };

  it('gives urgent keys before the backlog, each in its order', async () => {
    queue.add('b1', 'backlog');
    queue.add('u1', 'urgent');
    queue.add('b2', 'backlog');
    queue.add('u2', 'urgent');
    expect(await takeAll(4)).to.deep.equal(['u1', 'u2', 'b1', 'b2']);
  });

  it('lets namespaces take turns, so that the pods of one never stand behind all of another', async () => {
    for (let index = 0; index < 5_000; index++) queue.add(`flood/${index}`, 'urgent');
    for (const key of ['bystander/a', 'bystander/b', 'node']) queue.add(key, 'urgent');
    expect(await takeAll(6)).to.deep.equal(['flood/0', 'bystander/a', 'node', 'flood/1', 'bystander/b', 'flood/2']);
  });

  it('holds a key once, and moves it up if it becomes urgent, but never down', async () => {
    queue.add('other', 'backlog');
    queue.add('k', 'backlog');
    queue.add('k', 'backlog');
    queue.add('k', 'urgent');
    queue.add('k', 'backlog');
    expect(queue.depth()).to.equal(2);
    expect(await takeAll(2)).to.deep.equal(['k', 'other']);
    expect(queue.depth()).to.equal(0);
  });

  it('gives a key to no second worker, but again afterwards', async () => {
    queue.add('k', 'urgent');
    await queue.take();
    queue.add('k', 'backlog');
    queue.add('k', 'urgent');
    expect(queue.depth()).to.equal(0);
    expect(queue.idle()).to.equal(false);
    queue.done('k', true);
    expect(await queue.take()).to.equal('k');
    queue.done('k', true);
    expect(queue.idle()).to.equal(true);
  });

  it('keeps a key urgent that was added as urgent while a worker had it, whatever is added after it', async () => {
    queue.add('k', 'urgent');
    await queue.take();
    queue.add('k', 'urgent');
    queue.add('k', 'backlog');
    queue.add('other', 'backlog');
    queue.done('k', true);
    expect(await takeAll(2)).to.deep.equal(['k', 'other']);
  });

  it('wakes a worker that waits for a key', async () => {
    const [first, second] = [queue.take(), queue.take()];
    queue.add('a', 'urgent');
    queue.add('b', 'backlog');
    expect(await Promise.all([first, second])).to.deep.equal(['a', 'b']);
  });

  it('adds a key later, at the earliest of the requested times', async () => {
    queue.addAfter('k', 'urgent', 600_000);
    queue.addAfter('k', 'urgent', 1);
    queue.addAfter('k', 'urgent', 500_000);
    expect(queue.depth()).to.equal(0);
    expect(await queue.take()).to.equal('k');
  });

  it('retries again and again, however often it fails', async () => {
    queue.add('k', 'urgent');
    for (let failure = 0; failure < 40; failure++) {
      expect(await queue.take()).to.equal('k');
      queue.retry('k', 'urgent');
      queue.done('k', false);
    }
  });

  it('retries no earlier than requested', async () => {
    queue.retry('asked to wait', 'urgent', 600_000);
    queue.retry('next', 'urgent', 5);
    queue.retry('first', 'urgent');
    expect(await takeAll(2)).to.deep.equal(['first', 'next']);
    expect(queue.depth()).to.equal(0);
  });

  it('forgets a key: its place and its timers', async () => {
    queue.add('gone', 'urgent');
    queue.addAfter('gone', 'urgent', 1);
    queue.forget('gone');
    queue.addAfter('last', 'urgent', 5);
    expect(await queue.take()).to.equal('last');
  });

  it('gives no key once it is closed, not even to a waiting worker', async () => {
    const waiting = queue.take();
    queue.close();
    queue.add('k', 'urgent');
    expect([await waiting, await queue.take()]).to.deep.equal([undefined, undefined]);
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
