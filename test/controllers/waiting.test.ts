import { expect } from 'chai';
import { createWaiting } from '../../src/controllers/waiting.ts';
import { createHandClock } from './hand-clock.ts';

describe('who waits for an image', () => {
  const create = () => {
    const clock = createHandClock();
    const waiting = createWaiting(clock);
    /** `key` where it is to be looked at now, else `key in 400`. */
    const settled = (image: string) =>
      waiting.settled(image).map(({ key, inMs }) => (inMs === 0 ? key : `${key} in ${inMs}`));
    return { clock, waiting, settled };
  };
  const images = (count: number) => Array.from({ length: count }, (_, index) => `i${index}`);

  it('is nobody at first', () => {
    expect(create().settled('a')).to.deep.equal([]);
  });

  it('is every object that named it, once', () => {
    const { waiting, settled } = create();
    waiting.set('one', ['a', 'b', 'a']);
    waiting.set('two', ['a']);
    expect(settled('a')).to.deep.equal(['one', 'two']);
    expect(settled('b')).to.deep.equal(['one']);
  });

  it('is every object until it is decided again, however often the image is answered', () => {
    const { waiting, settled } = create();
    waiting.set('one', ['a']);
    expect(settled('a')).to.deep.equal(['one']);
    expect(settled('a')).to.deep.equal(['one']);
  });

  it('is no object that waits for something else by now', () => {
    const { waiting, settled } = create();
    waiting.set('one', ['a', 'b']);
    waiting.set('one', ['b', 'c']);
    expect(settled('a')).to.deep.equal([]);
    expect(settled('b')).to.deep.equal(['one']);
    expect(settled('c')).to.deep.equal(['one']);
  });

  it('is no object that waits for nothing any more', () => {
    const { waiting, settled } = create();
    waiting.set('one', ['a', 'a']);
    waiting.set('two', ['a']);
    waiting.set('one', []);
    waiting.set('three', []);
    expect(settled('a')).to.deep.equal(['two']);
    waiting.set('two', []);
    expect(settled('a')).to.deep.equal([]);
  });

  it('does not change while its answer is gone through', () => {
    const { waiting } = create();
    waiting.set('one', ['a']);
    waiting.set('two', ['a']);
    const seen: string[] = [];
    for (const { key } of waiting.settled('a')) {
      seen.push(key);
      waiting.set(key, []);
    }
    expect(seen).to.deep.equal(['one', 'two']);
  });

  it('is an object of few images with each of them', () => {
    const { waiting, settled } = create();
    waiting.set('one', images(8));
    expect(images(8).flatMap(settled)).to.deep.equal(Array.from({ length: 8 }, () => 'one'));
  });

  it('is an object of many images a second after it was decided, and with the last of them', async () => {
    const { clock, waiting, settled } = create();
    waiting.set('one', images(9));
    await clock.advance(600);
    expect(settled('i0')).to.deep.equal(['one in 400']);
    expect(settled('i0')).to.deep.equal(['one in 400']);
    await clock.advance(400);
    expect(settled('i1')).to.deep.equal(['one']);
    waiting.set('one', images(9).slice(2));
    waiting.set('two', images(9));
    expect(settled('i2')).to.deep.equal(['one', 'two in 1000']);
    expect(images(8).slice(3).flatMap(settled)).to.include.members(['two in 1000']);
    for (const image of ['i0', 'i1']) settled(image);
    expect(settled('i8')).to.deep.equal(['one', 'two']);
  });
});
