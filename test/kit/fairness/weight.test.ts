import { expect } from 'chai';
import { weightOf } from '../../../src/kit/fairness/weight.ts';

describe('the weight of a value', () => {
  it('grows with its texts and its entries', () => {
    expect(weightOf('x'.repeat(1_000))).to.be.within(1_000, 1_100);
    expect(weightOf(Array.from({ length: 1_000 }, () => 'x'))).to.be.within(10_000, 100_000);
    const labels = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`label-${at}`, 'v']));
    expect(weightOf(labels)).to.be.within(20_000, 200_000);
    expect(weightOf([{ key: 'x'.repeat(500), values: ['y'.repeat(500)] }])).to.be.within(1_000, 1_500);
  });

  it('is nothing for what takes no memory of its own', () => {
    for (const value of [undefined, null, 1, true]) expect(weightOf(value)).to.equal(0);
  });

  it('is not counted beyond the most that matters', () => {
    let read = 0;
    const item = {
      get key() {
        read += 1;
        return 'x';
      },
    };
    expect(
      weightOf(
        Array.from({ length: 10_000 }, () => item),
        1_000,
      ),
    ).to.be.within(1_000, 1_200);
    expect(read).to.be.below(30);
  });
});
