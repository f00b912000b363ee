import { expect } from 'chai';
import { createWaiting } from '../../src/controllers/waiting.ts';
import { createHandClock } from './hand-clock.ts';

describe('the objects that wait for an image', () => {
  const create = () => {
    const clock = createHandClock();
    const waiting = createWaiting(clock);
    /** `key` if the object is due now, else `key in 400`. */
    const lookupEnded = (image: string) =>
      waiting.lookupEnded(image).map(({ key, inMs }) => (inMs === 0 ? key : `${key} in ${inMs}`));
    return { clock, waiting, lookupEnded };
  };
  const images = (count: number) => Array.from({ length: count }, (_, index) => `i${index}`);

  it('are all objects that named it, once each', () => {
    const { waiting, lookupEnded } = create();
    waiting.set('one', ['a', 'b', 'a']);
    waiting.set('two', ['a']);
    expect(lookupEnded('a')).to.deep.equal(['one', 'two']);
    expect(lookupEnded('b')).to.deep.equal(['one']);
  });

  it('do not include an object that waits for another image now, or for none', () => {
    const { waiting, lookupEnded } = create();
    waiting.set('one', ['a', 'b']);
    waiting.set('one', ['b', 'c']);
    waiting.set('two', ['a', 'a']);
    expect(['a', 'b', 'c'].map(lookupEnded)).to.deep.equal([['two'], ['one'], ['one']]);
    for (const key of ['two', 'three']) waiting.set(key, []);
    expect(lookupEnded('a')).to.deep.equal([]);
  });

  it('may change while the caller walks through them', () => {
    const { waiting } = create();
    waiting.set('one', ['a']);
    waiting.set('two', ['a']);
    const seen: string[] = [];
    for (const { key } of waiting.lookupEnded('a')) {
      seen.push(key);
      waiting.set(key, []);
    }
    expect(seen).to.deep.equal(['one', 'two']);
  });

  it('include an object with few images at each answer', () => {
    const { waiting, lookupEnded } = create();
    waiting.set('one', images(8));
    expect(images(8).flatMap(lookupEnded)).to.deep.equal(Array.from({ length: 8 }, () => 'one'));
  });

  it('include an object with many images a second after its decision, and at the last answer', async () => {
    const { clock, waiting, lookupEnded } = create();
    waiting.set('one', images(9));
    await clock.advance(600);
    expect(lookupEnded('i0')).to.deep.equal(['one in 400']);
    expect(lookupEnded('i0')).to.deep.equal(['one in 400']);
    await clock.advance(400);
    expect(lookupEnded('i1')).to.deep.equal(['one']);
    waiting.set('one', images(9).slice(2));
    waiting.set('two', images(9));
    expect(lookupEnded('i2')).to.deep.equal(['one', 'two in 1000']);
    expect(images(8).slice(3).flatMap(lookupEnded)).to.include.members(['two in 1000']);
    for (const image of ['i0', 'i1']) lookupEnded(image);
    expect(lookupEnded('i8')).to.deep.equal(['one', 'two']);
  });

  const long = (count: number, of: string) =>
    Array.from({ length: count }, (_, index) => `r.example.com/${'x'.repeat(700)}/${of}${index}`);

  it('have room for a bounded number of bytes of one namespace, and others have theirs', () => {
    const { waiting, lookupEnded } = create();
    const set = (namespace: string) =>
      Array.from({ length: 100 }, (_, index) =>
        waiting.set(`${namespace}/${index}`, long(43, `${namespace}-${index}-`)),
      );
    const kept = set('flood').filter((isKept) => isKept).length;
    expect(kept).to.be.within(50, 90);
    expect(lookupEnded(long(1, 'flood-99-')[0] ?? '')).to.deep.equal([]);
    expect(waiting.set('other/web', ['a'])).to.equal(true);
    expect(lookupEnded('a')).to.deep.equal(['other/web']);
  });

  it('have room again when others are decided', () => {
    const { waiting } = create();
    for (let round = 0; round < 500; round += 1) {
      expect(waiting.set(`flood/${round}`, long(43, `${round}-`))).to.equal(true);
      waiting.set(`flood/${round}`, []);
    }
  });

  it('have room for 10,000 ordinary ones of one namespace', () => {
    const { waiting } = create();
    const names = ['registry.example.com/team/app:v1.2.3', 'registry.example.com/team/sidecar:v1', 'nginx'];
    for (let index = 0; index < 10_000; index += 1) expect(waiting.set(`shop/${index}`, names)).to.equal(true);
  });
});
