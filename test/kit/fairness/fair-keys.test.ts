import { expect } from 'chai';
import { createFairKeys } from '../../../src/kit/fairness/fair-keys.ts';

describe('waiting keys', () => {
  it('are there once each, until they are taken or removed', () => {
    const keys = createFairKeys();
    for (const key of ['a/1', 'a/2', 'a/1', 'b/1', 'node', 'other']) keys.add(key);
    expect(keys.size).to.equal(5);
    keys.delete('a/2');
    keys.delete('a/2');
    keys.delete('unknown');
    expect([keys.has('a/1'), keys.has('a/2'), keys.size]).to.deep.equal([true, false, 4]);
    const taken = Array.from({ length: 5 }, () => keys.take());
    expect(taken).to.deep.equal(['a/1', 'b/1', 'node', 'other', undefined]);
    expect([keys.has('a/1'), keys.size]).to.deep.equal([false, 0]);
    keys.add('a/1');
    expect(keys.take()).to.equal('a/1');
  });

  it('keep their order while others are added, removed and taken', () => {
    const keys = createFairKeys();
    for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'b/2']) keys.add(key);
    expect([keys.take(), keys.take()]).to.deep.equal(['a/1', 'b/1']);
    keys.delete('a/2');
    keys.add('a/2');
    keys.add('a/1');
    keys.delete('b/2');
    keys.add('b/3');
    const taken = Array.from({ length: 6 }, () => keys.take());
    expect(taken).to.deep.equal(['a/3', 'b/3', 'a/2', 'a/1', undefined, undefined]);
  });
});
