import { expect } from 'chai';
import { createFairQueue } from '../../../src/kit/fairness/fair-queue.ts';

/** Items are called by their group and a number, or by their group alone. */
function arrange(...items: readonly string[]) {
  const queue = createFairQueue<string>();
  const add = (item: string) => queue.add(item.slice(0, 1), item);
  for (const item of items) add(item);
  return { queue, add, take: (count: number) => Array.from({ length: count }, () => queue.take()) };
}

describe('a fair queue', () => {
  it('serves the groups in turn, and each group in its order', () => {
    const { queue, take } = arrange('a1', 'a2', 'a3', 'b1', 'c1', 'c2');
    expect([queue.size, queue.sizeOf('a'), queue.sizeOf('d')]).to.deep.equal([6, 3, 0]);
    expect(take(7)).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'c2', 'a3', undefined]);
    expect([queue.size, queue.sizeOf('a')]).to.deep.equal([0, 0]);
  });

  it('has each item once, until it is taken or removed', () => {
    const { queue, add, take } = arrange('a1', 'a2', 'a1', 'b1');
    expect(queue.size).to.equal(3);
    for (const item of ['a2', 'a2', 'a9']) queue.delete('a', item);
    queue.delete('c', 'c1');
    expect([queue.has('a', 'a1'), queue.has('a', 'a2'), queue.has('c', 'c1'), queue.size]).to.deep.equal([
      ...[true, false, false],
      2,
    ]);
    expect(take(3)).to.deep.equal(['a1', 'b1', undefined]);
    add('a1');
    expect([queue.has('a', 'a1'), ...take(1)]).to.deep.equal([true, 'a1']);
  });

  it('does not serve an item that was removed with its function, which has no effect later', () => {
    const { queue, add, take } = arrange();
    const remove = add('a1');
    add('b1');
    remove();
    remove();
    expect(queue.size).to.equal(1);
    add('a1');
    remove();
    expect(take(3)).to.deep.equal(['b1', 'a1', undefined]);
  });

  it('keeps its order while items are added, removed and taken', () => {
    const { queue, add, take } = arrange('a1', 'a2', 'a3', 'b1', 'b2');
    expect(take(2)).to.deep.equal(['a1', 'b1']);
    queue.delete('a', 'a2');
    add('a2');
    add('a1');
    queue.delete('b', 'b2');
    add('b3');
    expect(take(5)).to.deep.equal(['a3', 'b3', 'a2', 'a1', undefined]);
  });
});
