import { expect } from 'chai';
import { createLru } from '../../src/kit/lru.ts';

describe('the entries that were used last', () => {
  it('stay, and the others go', () => {
    const kept = createLru<number>(3);
    for (const [number, name] of ['a', 'b', 'c'].entries()) kept.set(name, number);
    kept.get('a');
    kept.set('d', 3);
    expect([...kept.keys()].sort()).to.deep.equal(['a', 'c', 'd']);
    kept.delete('c');
    kept.set('e', 4);
    expect([...kept.keys()].sort()).to.deep.equal(['a', 'd', 'e']);
  });

  it('take memory only once they are there', () => {
    const before = process.memoryUsage().heapUsed;
    const kept = createLru<number>(10_000_000);
    expect(process.memoryUsage().heapUsed - before).to.be.below(1_000_000);
    kept.set('a', 1);
    expect(kept.get('a')).to.equal(1);
  });

  it('are as many as allowed after many changes', () => {
    const kept = createLru<number>(100);
    for (let number = 0; number < 10_000; number++) kept.set(`${number % 150}`, number);
    expect(kept.size).to.equal(100);
    expect(kept.get('99')).to.equal(9_999);
    expect(kept.get('149')).to.equal(undefined);
  });
});
