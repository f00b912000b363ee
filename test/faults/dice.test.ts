import { expect } from 'chai';
import { createDice, DEFAULT_SEED, seedFrom } from './support/dice.ts';

const throws = (seed: number, purpose: string) => {
  const dice = createDice(seed, purpose);
  return Array.from({ length: 20 }, () => dice.whole(1, 6));
};

describe('the dice of the faults', () => {
  it('fall in the same way for one seed and one fault, and in another way for others', () => {
    expect(throws(1, 'etcd killed')).to.deep.equal(throws(1, 'etcd killed'));
    expect(throws(1, 'etcd killed')).to.not.deep.equal(throws(2, 'etcd killed'));
    expect(throws(1, 'etcd killed')).to.not.deep.equal(throws(1, 'registry down'));
  });

  it('stay within their bounds, reach both ends, and lose nothing when they shuffle', () => {
    const dice = createDice(7, 'bounds');
    const whole = new Set(Array.from({ length: 200 }, () => dice.whole(2, 4)));
    expect([...whole].sort()).to.deep.equal([2, 3, 4]);
    expect(dice.number(5, 6)).to.be.within(5, 6);
    expect(dice.pick(['only'])).to.equal('only');
    expect(() => dice.pick([])).to.throw('nothing to choose from');
    expect(dice.shuffled([1, 2, 3, 4]).sort()).to.deep.equal([1, 2, 3, 4]);
    expect([dice.chance(1), dice.chance(0)]).to.deep.equal([true, false]);
  });

  it('take their seed from a text', () => {
    expect(seedFrom(undefined)).to.equal(DEFAULT_SEED);
    expect(seedFrom('')).to.equal(DEFAULT_SEED);
    expect(seedFrom('42')).to.equal(42);
    expect(() => seedFrom('many')).to.throw('FAULTS_SEED: got "many", expected a whole number from 0 on');
  });
});
