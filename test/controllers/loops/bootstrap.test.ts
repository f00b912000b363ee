import { expect } from 'chai';
import { createBootstrap } from '../../../src/controllers/loops/bootstrap.ts';
import { createHandClock } from '../hand-clock.ts';

function setUp() {
  const clock = createHandClock();
  const controller = new AbortController();
  const ended: number[] = [];
  const line = new Set<string>();
  const world = { isStopped: false };
  const bootstrap = createBootstrap({
    timeoutMs: 120_000,
    clock,
    isStopped: () => world.isStopped,
    onOver: (open) => ended.push(open),
    isInLine: (key) => line.has(key),
  });
  return {
    ...{ clock, controller, ended, line, world, bootstrap, ...bootstrap },
    /** `daemonset/NAME` or the name of a pod. */
    begin: (...keys: string[]) =>
      bootstrap.begin(
        {
          pod: keys.filter((key) => !key.startsWith('daemonset/')),
          daemonset: keys.filter((key) => key.startsWith('daemonset/')),
        },
        controller.signal,
      ),
    decided: (...keys: string[]) => {
      for (const key of keys) bootstrap.decided(key.startsWith('daemonset/') ? 'daemonset' : 'pod', key);
    },
  };
}

describe('the bootstrap', () => {
  it('is not over before it has begun', async () => {
    const { clock, decided, over, ended } = setUp();
    decided('a');
    await clock.advance(600_000);
    expect([over(), ended]).to.deep.equal([false, []]);
  });

  const rows: [what: string, begin: string[], decided: string[], left: string[]][] = [
    ['is over at once if there is nothing to decide', [], [], []],
    ['is over when everything was decided', ['a', 'b', 'daemonset/a'], ['a', 'daemonset/a', 'b'], []],
    ['counts no object twice, and no object that came later', ['a', 'b'], ['a', 'a', 'c'], []],
    ['names the DaemonSets not decided yet', ['a', 'daemonset/a', 'daemonset/b'], ['daemonset/a'], ['daemonset/b']],
  ];
  for (const [what, all, now, left] of rows) {
    it(what, () => {
      const { begin, decided, over, ended, undecidedDaemonSets } = setUp();
      begin(...all);
      for (const [index, key] of now.entries()) {
        expect(over(), `before ${index}`).to.equal(false);
        decided(key);
      }
      const isOver = all.every((key) => now.includes(key));
      expect([over(), ended, [...undecidedDaemonSets()]]).to.deep.equal([isOver, isOver ? [0] : [], left]);
    });
  }

  it('does not take a pod for the DaemonSet of the same name', () => {
    const { bootstrap, controller } = setUp();
    bootstrap.begin({ pod: ['space/agent'], daemonset: ['space/agent'] }, controller.signal);
    bootstrap.decided('pod', 'space/agent');
    expect(bootstrap.over()).to.equal(false);
    bootstrap.decided('daemonset', 'space/agent');
    expect(bootstrap.over()).to.equal(true);
  });

  it('is over when its time is over, and says once how many objects were left', async () => {
    const { clock, over, begin, decided, ended } = setUp();
    begin('a', 'b', 'c');
    decided('b');
    await clock.advance(119_999);
    expect(over()).to.equal(false);
    await clock.advance(1);
    expect(over()).to.equal(true);
    await clock.advance(600_000);
    decided('a', 'c');
    expect(ended).to.deep.equal([2]);
  });

  it('is not over because the process ends, and leaves no timer', async () => {
    const { clock, controller, over, begin, ended } = setUp();
    begin('a');
    controller.abort();
    await clock.advance(600_000);
    expect([over(), ended, clock.waiting]).to.deep.equal([false, [], 0]);
  });

  it('waits beyond its time for a DaemonSet that waits for its turn to roll', async () => {
    const { clock, over, begin, decided, line, ended } = setUp();
    for (const key of ['daemonset/a', 'daemonset/b']) line.add(key);
    begin('a', 'daemonset/a', 'daemonset/b');
    await clock.advance(120_000);
    expect(over()).to.equal(false);
    await clock.advance(600_000);
    decided('daemonset/a');
    expect(over()).to.equal(false);
    decided('daemonset/b');
    expect(ended).to.deep.equal([0]);
  });

  it('does not end by its time while rollouts are stopped', async () => {
    const { clock, over, begin, world } = setUp();
    world.isStopped = true;
    begin('a');
    await clock.advance(600_000);
    expect(over()).to.equal(false);
    world.isStopped = false;
    await clock.advance(15_000);
    expect(over()).to.equal(true);
  });

  it('is over once no object is in line any more, even without a decision', async () => {
    const { clock, over, begin, line, ended } = setUp();
    line.add('daemonset/a');
    begin('a', 'daemonset/a');
    await clock.advance(120_000);
    line.clear();
    await clock.advance(15_000);
    expect([over(), ended]).to.deep.equal([true, [1]]);
  });
});
