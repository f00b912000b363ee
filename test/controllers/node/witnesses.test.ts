import { expect } from 'chai';
import { createTally, createWitnesses } from '../../../src/controllers/node/witnesses.ts';
import { taintKinds } from '../../../src/placement/nodes/node.ts';
import { node, taint } from '../../placement/objects.ts';
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

describe('the taints that nodes of the cluster have', () => {
  const arm = node({ taints: [taint('arch=arm64:NoSchedule'), taint('node.kubernetes.io/not-ready:NoExecute')] });
  const both = node({ taints: [taint('arch=amd64:NoSchedule'), taint('gpu=yes:NoSchedule')] });

  /** Nodes that come and go, `+arm -both`; whether each changes something; the taints in the end. */
  const rows: [given: string, steps: string, changes: boolean[], all: string[]][] = [
    ['no node', '+none', [false], []],
    ['two nodes with the same', '+arm +arm', [true, false], ['arch:NoSchedule']],
    ['another taint on the second', '+arm +both', [true, true], ['arch:NoSchedule', 'gpu:NoSchedule']],
    ['the last one gone', '+arm -arm', [true, true], []],
    ['one taint of two gone with its node', '+arm +both -both', [true, true, true], ['arch:NoSchedule']],
  ];
  for (const [given, steps, changes, all] of rows) {
    it(`are counted: ${given}`, () => {
      const live = createTally(taintKinds);
      const counted = steps.split(' ').map((step) => {
        const subject = step.endsWith('arm') ? arm : step.endsWith('both') ? both : undefined;
        return live.count(subject, step.startsWith('+') ? 1 : -1);
      });
      expect(counted).to.deep.equal(changes);
      expect([...live.all()].sort()).to.deep.equal(all);
    });
  }
});
