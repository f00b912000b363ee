import { expect } from 'chai';
import { createKeeper, type Keeper } from '../../../src/kube/watch/keeper.ts';

type Thing = { readonly namespace: string; readonly weight: number; readonly isStub?: true };

const KIB = 1024;

function arrange(): Keeper<Thing> {
  return createKeeper<Thing>({
    weigh: ({ weight }) => weight,
    stub: ({ namespace }) => ({ namespace, weight: 0, isStub: true }),
    groupOf: ({ namespace }) => namespace,
    sharesAll: () => false,
  });
}

/** Counts the objects that were kept whole. */
function whole(keeper: Keeper<Thing>, count: number, weight: number, namespace: string): number {
  const kept = Array.from({ length: count }, (_, at) =>
    keeper.keep(`${namespace}/${at}`, { namespace, weight }, undefined),
  );
  return kept.filter(({ isStub }) => isStub === undefined).length;
}

describe('how much of objects is kept', () => {
  it('is all of a small one, however many there are', () => {
    expect(whole(arrange(), 10_000, 4 * KIB, 'shop')).to.equal(10_000);
  });

  it('is little of a large one', () => {
    expect(whole(arrange(), 1, 16 * KIB, 'shop')).to.equal(1);
    expect(whole(arrange(), 1, 16 * KIB + 1, 'shop')).to.equal(0);
  });

  it('is bounded in bytes for a namespace', () => {
    expect(whole(arrange(), 1_000, 16 * KIB, 'shop')).to.equal(Math.floor((2 * KIB) / 12));
    expect(whole(arrange(), 1_000, 8 * KIB, 'shop')).to.equal((2 * KIB) / 4);
  });

  it('is bounded in bytes for all namespaces, and each gets a little', () => {
    const keeper = arrange();
    const kept = Array.from({ length: 20 }, (_, at) => whole(keeper, 1_000, 16 * KIB, `shop-${at}`));
    const bytes = kept.reduce((sum, count) => sum + count * 12 * KIB, 0);
    expect(bytes).to.be.within(11 * KIB * KIB, 13.5 * KIB * KIB);
    expect(Math.min(...kept)).to.equal(5);
  });

  it('grows again when others are gone', () => {
    const keeper = arrange();
    whole(keeper, 1_000, 16 * KIB, 'shop');
    for (let at = 0; at < 1_000; at += 1) keeper.forget(`shop/${at}`);
    expect(whole(keeper, 10, 16 * KIB, 'shop')).to.equal(10);
  });

  it('counts only the last state of an object', () => {
    const keeper = arrange();
    const big: Thing = { namespace: 'shop', weight: 16 * KIB };
    for (let at = 0; at < 1_000; at += 1) expect(keeper.keep('shop/a', big, undefined)).to.equal(big);
    keeper.keep('shop/a', { namespace: 'shop', weight: 100 }, undefined);
    expect(whole(keeper, 170, 16 * KIB, 'shop')).to.equal(170);
  });
});
