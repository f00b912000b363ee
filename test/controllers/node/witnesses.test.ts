import { expect } from 'chai';
import { createWitnesses } from '../../../src/controllers/node/witnesses.ts';
import { node } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

describe('the architectures that nodes are witnesses for', () => {
  const of = (uid: string, architecture: string, more: Parameters<typeof node>[0] = {}) =>
    node({ uid, architecture, ...more });

  it('are those of the first list at once, and those of a node that joins after a minute', async () => {
    const clock = createHandClock();
    const witnesses = createWitnesses(clock);
    const now = () => [witnesses.architectures(), witnesses.dueInMs()];
    witnesses.seen({ now: of('a', 'amd64'), before: undefined }, true);
    expect(now()).to.deep.equal([['amd64'], undefined]);
    witnesses.seen({ now: of('b', 'arm64'), before: undefined }, false);
    expect(now()).to.deep.equal([['amd64'], 60_000]);
    await clock.advance(59_999);
    expect(now()).to.deep.equal([['amd64'], 1]);
    await clock.advance(1);
    expect(now()).to.deep.equal([['amd64', 'arm64'], undefined]);
  });

  it('stay the same array until one appears or disappears', () => {
    const witnesses = createWitnesses(createHandClock());
    const [first, second] = [of('a', 'amd64'), of('b', 'amd64')];
    witnesses.seen({ now: first, before: undefined }, true);
    const before = witnesses.architectures();
    witnesses.seen({ now: second, before: undefined }, true);
    witnesses.seen({ now: undefined, before: first }, false);
    expect(witnesses.architectures()).to.equal(before);
    witnesses.seen({ now: undefined, before: second }, false);
    expect(witnesses.architectures()).to.deep.equal([]);
  });

  it('forget the node that another one of the same name replaces', async () => {
    const clock = createHandClock();
    const witnesses = createWitnesses(clock);
    const before = of('old', 'amd64');
    witnesses.seen({ now: before, before: undefined }, true);
    witnesses.seen({ now: of('new', 'arm64'), before }, false);
    expect(witnesses.architectures()).to.deep.equal([]);
    await clock.advance(60_000);
    expect(witnesses.architectures()).to.deep.equal(['arm64']);
  });

  it('count a node that was ready for a minute, even if nobody asked before it was not ready any more', async () => {
    const clock = createHandClock();
    const witnesses = createWitnesses(clock);
    const before = of('a', 'arm64');
    witnesses.seen({ now: before, before: undefined }, false);
    await clock.advance(90_000);
    witnesses.seen({ now: of('a', 'arm64', { ready: false }), before }, false);
    expect(witnesses.architectures()).to.deep.equal(['arm64']);
  });
});
