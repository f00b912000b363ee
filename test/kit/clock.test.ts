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
