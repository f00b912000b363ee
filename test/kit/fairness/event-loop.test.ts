import { expect } from 'chai';
import { createTurns, inTurns } from '../../../src/kit/fairness/event-loop.ts';

/** An event loop whose turns the test counts, with a clock that it moves. */
function arrange() {
  let [now, turn] = [0, 0];
  const planned: (() => void)[] = [];
  const turns = createTurns({ monotonic: () => now }, (run) => void planned.push(run));
  return {
    turns,
    pass(ms: number) {
      now += ms;
    },
    turn: () => turn,
    /** Runs what was planned for the next turn, and all that follows from it. */
    async next() {
      turn += 1;
      for (const run of planned.splice(0)) {
        run();
        for (let count = 0; count < 5; count += 1) await Promise.resolve();
      }
    },
  };
}

describe('turns of the event loop', () => {
  it('are over after 8 ms of work', () => {
    const { turns, pass } = arrange();
    expect(turns.isOver()).to.equal(false);
    pass(7);
    expect(turns.isOver()).to.equal(false);
    pass(1);
    expect(turns.isOver()).to.equal(true);
  });

  it('begin with the first work in them, not when nothing was done', async () => {
    const { turns, pass, next } = arrange();
    turns.isOver();
    await next();
    pass(1_000);
    expect(turns.isOver()).to.equal(false);
  });

  it('let a loop over many items work for 8 ms in each', async () => {
    const { turns, pass, next, turn } = arrange();
    const done: number[] = [];
    const rest = inTurns(turns, [1, 2, 3, 4, 5, 6, 7], () => {
      pass(4);
      done.push(turn());
    });
    expect(done).to.deep.equal([0, 0, 0]);
    for (let count = 0; count < 3; count += 1) await next();
    await rest;
    expect(done).to.deep.equal([0, 0, 0, 1, 1, 1, 2]);
  });

  it('are shared: two loops do not work for twice as long', async () => {
    const { turns, pass, next, turn } = arrange();
    const done = new Map<number, number>();
    const work = () => {
      pass(2);
      done.set(turn(), (done.get(turn()) ?? 0) + 1);
    };
    const items = Array.from({ length: 20 }, (_, at) => at);
    const both = [inTurns(turns, items, work), inTurns(turns, items, work)];
    for (let count = 0; count < 20; count += 1) await next();
    await Promise.all(both);
    // The last item of a turn, and the first one of a loop whose turn is over already.
    expect(Math.max(...done.values())).to.be.at.most(6);
    expect([...done.values()].reduce((sum, count) => sum + count)).to.equal(40);
  });

  it('are one for a loop over few items, which ends at once', () => {
    const { turns } = arrange();
    const done: number[] = [];
    expect(inTurns(turns, [1, 2, 3], (item) => done.push(item))).to.equal(undefined);
    expect(done).to.deep.equal([1, 2, 3]);
  });
});
