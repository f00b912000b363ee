import { expect } from 'chai';
import { createAllowance } from '../../../src/kit/fairness/allowance.ts';

describe('an allowance', () => {
  let time = 0;
  const create = () => createAllowance({ burst: 3, perSecond: 2, now: () => time });
  const taken = (take: (key: string) => boolean, key: string, tries: number) =>
    Array.from({ length: tries }, () => take(key)).filter(Boolean).length;

  it('is a burst at once, and then a number each second', () => {
    const take = create();
    expect(taken(take, 'a', 10)).to.equal(3);
    time += 499;
    expect(taken(take, 'a', 10)).to.equal(0);
    time += 1;
    expect(taken(take, 'a', 10)).to.equal(1);
    time += 1000;
    expect(taken(take, 'a', 10)).to.equal(2);
  });

  it('never exceeds the burst', () => {
    const take = create();
    expect(taken(take, 'a', 1)).to.equal(1);
    time += 3_600_000;
    expect(taken(take, 'a', 10)).to.equal(3);
  });

  it('is separate for each key', () => {
    const take = create();
    expect(taken(take, 'a', 10)).to.equal(3);
    expect(taken(take, 'b', 10)).to.equal(3);
  });
});
