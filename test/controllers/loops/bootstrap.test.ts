import { expect } from 'chai';
import { createBootstrap } from '../../../src/controllers/loops/bootstrap.ts';
import { createHandClock } from '../hand-clock.ts';

function setUp(timeoutMs = 120_000, isInLine?: (key: string) => boolean) {
  const clock = createHandClock();
  const controller = new AbortController();
  const ended: number[] = [];
  let isStopped = false;
  const bootstrap = createBootstrap({
    timeoutMs,
    clock,
    isStopped: () => isStopped,
    onOver: (open) => ended.push(open),
    ...(isInLine === undefined ? {} : { isInLine }),
  });
  return {
    clock,
    controller,
    ended,
    bootstrap,
    stop: (is: boolean) => {
      isStopped = is;
    },
    /** `daemonset/NAME` or the name of a pod. */
    begin: (...keys: string[]) =>
      bootstrap.begin(
        {
          pod: keys.filter((key) => !key.startsWith('daemonset/')),
          daemonset: keys.filter((key) => key.startsWith('daemonset/')),
        },
        controller.signal,
      ),
  };
}

describe('the bootstrap', () => {
  it('is not over before it has begun', async () => {
    const { clock, bootstrap, ended } = setUp();
    bootstrap.decided('pod', 'a');
    await clock.advance(600_000);
    expect(bootstrap.over()).to.equal(false);
    expect(ended).to.deep.equal([]);
  });

  it('is over at once if there is nothing to decide', () => {
    const { bootstrap, begin, ended } = setUp();
    begin();
    expect(bootstrap.over()).to.equal(true);
    expect(ended).to.deep.equal([0]);
  });

  it('is over when everything was decided', () => {
    const { bootstrap, begin, ended } = setUp();
    begin('a', 'b', 'daemonset/a');
    bootstrap.decided('pod', 'a');
    bootstrap.decided('daemonset', 'daemonset/a');
    expect(bootstrap.over()).to.equal(false);
    bootstrap.decided('pod', 'b');
    expect(bootstrap.over()).to.equal(true);
    expect(ended).to.deep.equal([0]);
  });

  it('counts no object twice, and no object that came later', () => {
    const { bootstrap, begin } = setUp();
    begin('a', 'b');
    bootstrap.decided('pod', 'a');
    bootstrap.decided('pod', 'a');
    bootstrap.decided('pod', 'c');
    expect(bootstrap.over()).to.equal(false);
  });

  it('does not take a pod for the DaemonSet of the same name', () => {
    const { bootstrap, controller } = setUp();
    bootstrap.begin({ pod: ['space/agent'], daemonset: ['space/agent'] }, controller.signal);
    bootstrap.decided('pod', 'space/agent');
    expect(bootstrap.over()).to.equal(false);
    bootstrap.decided('daemonset', 'space/agent');
    expect(bootstrap.over()).to.equal(true);
  });

  it('is over when its time is over, and says how many objects were left', async () => {
    const { clock, bootstrap, begin, ended } = setUp(120_000);
    begin('a', 'b', 'c');
    bootstrap.decided('pod', 'b');
    await clock.advance(119_999);
    expect(bootstrap.over()).to.equal(false);
    await clock.advance(1);
    expect(bootstrap.over()).to.equal(true);
    expect(ended).to.deep.equal([2]);
  });

  it('reports its end once', async () => {
    const { clock, bootstrap, begin, ended } = setUp();
    begin('a');
    bootstrap.decided('pod', 'a');
    await clock.advance(600_000);
    bootstrap.decided('pod', 'a');
    expect(ended).to.deep.equal([0]);
  });

  it('is not over because the process ends, and leaves no timer', async () => {
    const { clock, controller, bootstrap, begin, ended } = setUp();
    begin('a');
    controller.abort();
    await clock.advance(600_000);
    expect(bootstrap.over()).to.equal(false);
    expect(ended).to.deep.equal([]);
    expect(clock.waiting).to.equal(0);
  });

  it('waits beyond its time for a DaemonSet that waits for its turn to roll', async () => {
    const line = new Set(['daemonset/a', 'daemonset/b']);
    const { clock, bootstrap, begin, ended } = setUp(120_000, (key) => line.has(key));
    begin('a', 'daemonset/a', 'daemonset/b');
    await clock.advance(120_000);
    expect(bootstrap.over()).to.equal(false);
    await clock.advance(600_000);
    bootstrap.decided('daemonset', 'daemonset/a');
    expect(bootstrap.over()).to.equal(false);
    bootstrap.decided('daemonset', 'daemonset/b');
    expect(ended).to.deep.equal([0]);
  });

  it('does not end by its time while rollouts are stopped', async () => {
    const { clock, bootstrap, begin, stop } = setUp(120_000);
    stop(true);
    begin('a');
    await clock.advance(600_000);
    expect(bootstrap.over()).to.equal(false);
    stop(false);
    await clock.advance(15_000);
    expect(bootstrap.over()).to.equal(true);
  });

  it('names the DaemonSets that were not decided yet', () => {
    const { bootstrap, begin } = setUp();
    begin('a', 'daemonset/a', 'daemonset/b');
    bootstrap.decided('daemonset', 'daemonset/a');
    expect([...bootstrap.undecidedDaemonSets()]).to.deep.equal(['daemonset/b']);
  });

  it('is over once no object is in line any more, even without a decision', async () => {
    const line = new Set(['daemonset/a']);
    const { clock, bootstrap, begin, ended } = setUp(120_000, (key) => line.has(key));
    begin('a', 'daemonset/a');
    await clock.advance(120_000);
    line.clear();
    await clock.advance(15_000);
    expect(bootstrap.over()).to.equal(true);
    expect(ended).to.deep.equal([1]);
  });
});
