import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';

describe('the steady clock', () => {
  it('equals the wall clock until that is set', () => {
    const before = Date.now;
    const start = systemClock.steady();
    expect(start).to.be.closeTo(systemClock.wall(), 60_000);
    try {
      Date.now = () => before() - 86_400_000;
      expect(systemClock.steady()).to.be.at.least(start);
      expect(systemClock.wall()).to.be.below(start);
    } finally {
      Date.now = before;
    }
  });
});

describe('a time that is longer than a timer can be', () => {
  const MONTHS = 2_400 * 3_600_000;

  it('does not end at once', async () => {
    const end = new AbortController();
    const ended: string[] = [];
    const cancel = systemClock.after(MONTHS, () => ended.push('after'));
    const delay = systemClock.delay(MONTHS, end.signal).then(() => ended.push('delay'));
    await systemClock.delay(20, end.signal);
    expect(ended).to.deep.equal([]);
    cancel();
    end.abort();
    await delay;
  });
});
