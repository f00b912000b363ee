import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { createLargeTurns } from '../../src/controllers/large-turns.ts';
import { createController } from '../../src/kube/control-loop.ts';
import { createHandClock } from './hand-clock.ts';

function arrange(isPaced = true) {
  const clock = createHandClock();
  const called: string[] = [];
  const turns = createLargeTurns(clock, isPaced, (key) => called.push(key));
  let [finish, work]: [() => void, Promise<unknown>] = [() => {}, Promise.resolve()];
  return {
    ...{ clock, called, turns },
    /** Whether the work on an object begins. It lasts until `end`. */
    begin(key: string, line: 'new' | 'again' | 'bound'): boolean {
      let hasBegun = false;
      const all = turns.large(key, line, () => {
        hasBegun = true;
        return new Promise((resolve) => {
          finish = () => resolve({ outcome: 'unchanged' });
        });
      });
      if (hasBegun) work = all;
      return hasBegun;
    },
    async end() {
      finish();
      await work;
    },
  };
}

describe('the turns of large objects', () => {
  it('come one at a time, and namespaces take turns', async () => {
    const { clock, called, begin, end } = arrange(false);
    expect(begin('one/a', 'new')).to.equal(true);
    for (const key of ['one/b', 'one/c', 'two/a', 'one/b']) expect(begin(key, 'new')).to.equal(false);
    for (let count = 0; count < 3; count += 1) {
      await end();
      await clock.advance(1);
      expect(begin(called.at(-1) ?? '', 'new')).to.equal(true);
    }
    expect(called).to.deep.equal(['one/b', 'two/a', 'one/c']);
    await end();
    await clock.advance(1);
    expect(called).to.have.length(3);
    expect(begin('three/a', 'new')).to.equal(true);
  });

  it('leave a pause to others after each', async () => {
    const { clock, called, begin, end } = arrange();
    begin('one/a', 'new');
    begin('one/b', 'new');
    await clock.advance(50);
    await end();
    await clock.advance(99);
    expect(called).to.deep.equal([]);
    expect(begin('one/c', 'new')).to.equal(false);
    await clock.advance(1);
    expect(called).to.deep.equal(['one/b']);
  });

  it('come every second time to an object that was not decided yet', async () => {
    const { clock, called, begin, end } = arrange(false);
    begin('one/a', 'new');
    for (const key of ['one/old1', 'one/old2', 'two/old']) begin(key, 'again');
    for (const key of ['one/new1', 'one/new2', 'one/new3', 'one/new4']) begin(key, 'new');
    for (let count = 0; count < 7; count += 1) {
      await end();
      await clock.advance(1);
      begin(called.at(-1) ?? '', 'again');
    }
    expect(called).to.deep.equal([
      ...['one/new1', 'one/old1', 'one/new2', 'two/old', 'one/new3', 'one/old2', 'one/new4'],
    ]);
  });

  it('are, every third one, for a pod that runs already', async () => {
    const { clock, called, begin, end } = arrange(false);
    begin('one/a', 'new');
    for (let index = 0; index < 100; index += 1) begin(`one/bound${index}`, 'bound');
    for (const key of ['one/new1', 'one/new2']) begin(key, 'new');
    for (const key of ['one/old1', 'one/old2']) begin(key, 'again');
    for (let count = 0; count < 7; count += 1) {
      await end();
      await clock.advance(1);
      begin(called.at(-1) ?? '', 'again');
    }
    expect(called).to.deep.equal([
      ...['one/new1', 'one/old1', 'one/bound0', 'one/new2', 'one/old2', 'one/bound1', 'one/bound2'],
    ]);
  });

  it('go on when the object whose turn has come is gone', async () => {
    const { clock, called, turns, begin, end } = arrange();
    begin('one/a', 'new');
    for (const key of ['one/b', 'one/c', 'one/d']) begin(key, 'new');
    turns.forget('one/c');
    await end();
    await clock.advance(1_000);
    expect(called).to.deep.equal(['one/b']);
    turns.forget('one/b');
    expect(called).to.deep.equal(['one/b', 'one/d']);
  });

  it('end with the term', async () => {
    const { clock, called, turns, begin, end } = arrange();
    begin('one/a', 'new');
    begin('one/b', 'new');
    await end();
    turns.stop();
    await clock.advance(1_000);
    expect(called).to.deep.equal([]);
  });
});

describe('large objects whose writes fail again and again', () => {
  it('are tried less and less often, as small ones are, although each waits for its turn in between', async () => {
    const clock = createHandClock();
    let tries = 0;
    const controller = createController({
      name: 'pod',
      workers: 2,
      clock,
      priorityOf: () => 'urgent',
      onOutcome() {},
      reconcile: (key) =>
        turns.large(key, 'new', async () => {
          tries += 1;
          await Promise.resolve();
          throw new Error('etcdserver: request is too large');
        }),
    });
    const turns = createLargeTurns(clock, true, controller.enqueue);
    for (let index = 0; index < 10; index += 1) controller.enqueue(`one/${index}`);
    const end = new AbortController();
    const ended = controller.run(end.signal, end.signal);
    for (let step = 0; step < 1_200; step += 1) {
      await clock.advance(50);
      await turn();
    }
    end.abort();
    await ended;
    expect(tries).to.be.within(50, 150);
  });
});
