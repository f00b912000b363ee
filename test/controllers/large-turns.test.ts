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
    expect(turns.begin('one/a', true)).to.equal(true);
    for (const key of ['one/b', 'one/c', 'two/a', 'one/b']) expect(turns.begin(key, true)).to.equal(false);
    for (let count = 0; count < 3; count += 1) {
      turns.end();
      await clock.advance(1);
      expect(turns.begin(called.at(-1) ?? '', true)).to.equal(true);
    }
    expect(called).to.deep.equal(['one/b', 'two/a', 'one/c']);
    turns.end();
    await clock.advance(1);
    expect(called).to.have.length(3);
    expect(turns.begin('three/a', true)).to.equal(true);
  });

  it('leave a pause to others after each', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a', true);
    turns.begin('one/b', true);
    await clock.advance(50);
    turns.end();
    await clock.advance(99);
    expect(called).to.deep.equal([]);
    expect(turns.begin('one/c', true)).to.equal(false);
    await clock.advance(1);
    expect(called).to.deep.equal(['one/b']);
  });

  it('come every second time to an object that was not decided yet', async () => {
    const { clock, called, turns } = arrange(false);
    turns.begin('one/a', true);
    for (const key of ['one/old1', 'one/old2', 'two/old']) turns.begin(key, false);
    for (const key of ['one/new1', 'one/new2', 'one/new3', 'one/new4']) turns.begin(key, true);
    for (let count = 0; count < 7; count += 1) {
      turns.end();
      await clock.advance(1);
      turns.begin(called.at(-1) ?? '', false);
    }
    expect(called).to.deep.equal([
      ...['one/new1', 'one/old1', 'one/new2', 'two/old', 'one/new3', 'one/old2', 'one/new4'],
    ]);
  });

  it('go on when the object whose turn has come is gone', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a', true);
    for (const key of ['one/b', 'one/c', 'one/d']) turns.begin(key, true);
    turns.forget('one/c');
    turns.end();
    await clock.advance(1_000);
    expect(called).to.deep.equal(['one/b']);
    turns.forget('one/b');
    expect(called).to.deep.equal(['one/b', 'one/d']);
  });

  it('end with the term', async () => {
    const { clock, called, turns } = arrange();
    turns.begin('one/a', true);
    turns.begin('one/b', true);
    turns.end();
    turns.stop();
    await clock.advance(1_000);
    expect(called).to.deep.equal([]);
  });
});
