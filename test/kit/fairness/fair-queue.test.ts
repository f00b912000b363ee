import { expect } from 'chai';
import { createFairQueue } from '../../../src/kit/fairness/fair-queue.ts';

describe('a fair queue', () => {
  const all = (queue: { take(): string | undefined }): string[] => {
    const items: string[] = [];
    for (let item = queue.take(); item !== undefined; item = queue.take()) items.push(item);
    return items;
  };

  it('serves the groups in turn, and each group in its order', () => {
    const queue = createFairQueue<string>();
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.add(item.slice(0, 1), item);
    expect([queue.size, queue.sizeOf('a'), queue.sizeOf('d')]).to.deep.equal([6, 3, 0]);
    expect(all(queue)).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
    expect([queue.size, queue.sizeOf('a')]).to.deep.equal([0, 0]);
  });

  it('does not serve an item that was removed', () => {
    const queue = createFairQueue<string>();
    const remove = queue.add('a', 'a1');
    queue.add('b', 'b1');
    remove();
    remove();
    expect(queue.size).to.equal(1);
    queue.add('a', 'a2');
    expect(all(queue)).to.deep.equal(['b1', 'a2']);
  });
});
