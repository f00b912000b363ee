import { expect } from 'chai';
import { createLargeTurns } from '../../src/controllers/large-turns.ts';
import { createHandClock } from './hand-clock.ts';

function arrange(isPaced = true) {
  const clock = createHandClock();
  const called: string[] = [];
  const turns = createLargeTurns(clock, isPaced, (key) => called.push(key));
  return { clock, called, turns };
}

describe('the turns of large objects', () => {
  it('come one at a time, and namespaces take turns', async () => {
    const { clock, called, turns } = arrange(false);
    expect(turns.begin('one/a')).to.equal(true);
    for (const key of ['one/b', 'one/c', 'two/a', 'one/b']) expect(turns.begin(key)).to.equal(false);
    for (let count = 0; count < 3; count += 1) {
      turns.end();
      await clock.advance(1);
      expect(turns.begin(called.at(-1) ?? '')).to.equal(true);
    }
    expect(called).to.deep.equal(['one/b', 'two/a', 'one/c']);
    turns.end();
    await clock.advance(1);
    expect(called).to.have.length(3);
    expect(turns.begin('three/a')).to.equal(true);
  });

  it('leave four fifths of the time to others', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a');
    turns.begin('one/b');
    await clock.advance(50);
    turns.end();
    await clock.advance(199);
    expect(called).to.deep.equal([]);
    expect(turns.begin('one/c')).to.equal(false);
    await clock.advance(1);
    expect(called).to.deep.equal(['one/b']);
  });

  it('go on when the object whose turn has come is gone', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a');
    for (const key of ['one/b', 'one/c', 'one/d']) turns.begin(key);
    turns.forget('one/c');
    turns.end();
    await clock.advance(1_000);
    expect(called).to.deep.equal(['one/b']);
    turns.forget('one/b');
    expect(called).to.deep.equal(['one/b', 'one/d']);
  });

  it('end with the term', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a');
    turns.begin('one/b');
    turns.end();
    turns.stop();
    await clock.advance(1_000);
    expect(called).to.deep.equal([]);
  });
});
