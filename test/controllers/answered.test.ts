import { expect } from 'chai';
import { createAnswered } from '../../src/controllers/answered.ts';
import { createHandClock } from './hand-clock.ts';

const at = (uid: string, resourceVersion: string) => ({ uid, resourceVersion });

function setUp(seen = at('a', '5')) {
  const clock = createHandClock();
  const store = { get: () => seen };
  return { clock, answered: createAnswered(store, clock) };
}

describe('the answer to a write', () => {
  it('makes the object wait until the watch shows the write', () => {
    const { answered } = setUp();
    answered.set('k', at('a', '7'));
    expect(answered.behindMs('k', at('a', '6'))).to.equal(30_000);
    expect(answered.behindMs('k', at('a', '7'))).to.equal(0);
    expect(answered.behindMs('k', at('a', '6'))).to.equal(0);
  });

  it('causes no wait if the watch was faster than the answer', () => {
    const { answered } = setUp(at('a', '7'));
    answered.set('k', at('a', '7'));
    expect(answered.behindMs('k', at('a', '7'))).to.equal(0);
  });

  it('causes no wait for another object of the same name', () => {
    const { answered } = setUp();
    answered.set('k', at('a', '7'));
    expect(answered.behindMs('k', at('b', '6'))).to.equal(0);
  });

  it('causes a wait of half a minute at most, because after a restored backup no event comes', async () => {
    const { answered, clock } = setUp();
    answered.set('k', at('a', '700'));
    await clock.advance(20_000);
    expect(answered.behindMs('k', at('a', '6'))).to.equal(10_000);
    await clock.advance(10_000);
    expect(answered.behindMs('k', at('a', '6'))).to.equal(0);
  });
});
