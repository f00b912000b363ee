import { expect } from 'chai';
import { createWaiting } from '../../src/controllers/waiting.ts';

describe('who waits for an image', () => {
  it('is nobody at first', () => {
    expect(createWaiting().keysFor('a')).to.deep.equal([]);
  });

  it('is every object that named it, once', () => {
    const waiting = createWaiting();
    waiting.set('one', ['a', 'b', 'a']);
    waiting.set('two', ['a']);
    expect(waiting.keysFor('a')).to.deep.equal(['one', 'two']);
    expect(waiting.keysFor('b')).to.deep.equal(['one']);
  });

  it('is no object that waits for something else by now', () => {
    const waiting = createWaiting();
    waiting.set('one', ['a', 'b']);
    waiting.set('one', ['b', 'c']);
    expect(waiting.keysFor('a')).to.deep.equal([]);
    expect(waiting.keysFor('b')).to.deep.equal(['one']);
    expect(waiting.keysFor('c')).to.deep.equal(['one']);
  });

  it('is no object that waits for nothing any more', () => {
    const waiting = createWaiting();
    waiting.set('one', ['a', 'a']);
    waiting.set('two', ['a']);
    waiting.set('one', []);
    waiting.set('three', []);
    expect(waiting.keysFor('a')).to.deep.equal(['two']);
    waiting.set('two', []);
    expect(waiting.keysFor('a')).to.deep.equal([]);
  });

  it('does not change while its answer is gone through', () => {
    const waiting = createWaiting();
    waiting.set('one', ['a']);
    waiting.set('two', ['a']);
    const seen: string[] = [];
    for (const key of waiting.keysFor('a')) {
      seen.push(key);
      waiting.set(key, []);
    }
    expect(seen).to.deep.equal(['one', 'two']);
  });
});
