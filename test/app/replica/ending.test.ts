import { expect } from 'chai';
import { createEnding } from '../../../src/app/replica/base.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';

describe('the end of a process', () => {
  const arrange = (isAborted = false) => {
    const clock = createHandClock();
    const signal = new AbortController();
    if (isAborted) signal.abort();
    const ending = createEnding(signal.signal, clock);
    const reached = () => [ending.writes, ending.admission, ending.all].map(({ aborted }) => aborted);
    return { clock, signal, ending, reached };
  };

  it('gives up writes after 4 s, admission after 5 s and everything after 9 s, counted from the signal', async () => {
    const { clock, signal, reached } = arrange();
    await clock.advance(60_000);
    expect(reached()).to.deep.equal([false, false, false]);
    signal.abort();
    const rows: [ms: number, expected: boolean[]][] = [
      [3_999, [false, false, false]],
      [1, [true, false, false]],
      [999, [true, false, false]],
      [1, [true, true, false]],
      [3_999, [true, true, false]],
      [1, [true, true, true]],
    ];
    for (const [ms, expected] of rows) {
      await clock.advance(ms);
      expect(reached(), `${clock.monotonic() - 60_000} ms after the signal`).to.deep.equal(expected);
    }
  });

  it('begins at once if the signal has come already', async () => {
    const { clock, reached } = arrange(true);
    await clock.advance(5_000);
    expect(reached()).to.deep.equal([true, true, false]);
  });

  it('leaves no timer behind', async () => {
    const { clock, signal, ending, reached } = arrange();
    signal.abort();
    ending.cancel();
    await clock.advance(60_000);
    expect(reached()).to.deep.equal([false, false, false]);
  });
});
