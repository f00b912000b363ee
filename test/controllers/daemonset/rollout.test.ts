import { expect } from 'chai';
import {
  createRolloutTurn,
  giveTurnBack,
  isPaused,
  markSeen,
  nextToRoll,
  type RolloutTurn,
  stopped,
  stopsAll,
  takeTurn,
  verdictNow,
  waitsInLine,
} from '../../../src/controllers/daemonset/rollout.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { createHandClock } from '../hand-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

type Given = {
  generation?: number;
  observed?: number;
  desired?: number;
  current?: number;
  available?: number;
  misscheduled?: number;
  updated?: number;
  strategy?: string;
  /** What the record says of the rollout. */
  rollout?: string;
  /** Whether archaware wrote to it before. */
  isRecorded?: boolean;
};

function daemonSet(name: string, given: Given = {}): DaemonSet {
  const { generation = 1, observed = generation, desired = 3, available = desired, misscheduled = 0, strategy } = given;
  const { current = desired } = given;
  const record = { images: ['app'], subject: '', rollout: given.rollout, tolerations: [] };
  const annotations =
    given.rollout !== undefined
      ? { 'archaware.dev/tolerations': JSON.stringify(record) }
      : given.isRecorded
        ? { 'archaware.dev/tolerations': '[]' }
        : {};
  return readDaemonSet({
    metadata: { namespace: 'ops', name, uid: name, generation, annotations },
    spec: { updateStrategy: { type: strategy } },
    status: {
      observedGeneration: observed,
      desiredNumberScheduled: desired,
      currentNumberScheduled: current,
      numberMisscheduled: misscheduled,
      updatedNumberScheduled: given.updated ?? available,
      numberAvailable: available,
    },
  });
}

function turns() {
  const clock = createHandClock();
  const store = createStore<DaemonSet>();
  let count = 0;
  const unready = (now: number) => {
    count = now;
  };
  const turn: RolloutTurn = createRolloutTurn({
    daemonSets: store,
    clock,
    isSystem: (namespace) => namespace === 'kube-system',
    unreadyNodes: () => count,
  });
  /** Shows a DaemonSet in the watch. */
  const put = (key: string, given?: Given) => store.put(key, daemonSet(key, given));
  /** Whether the DaemonSet may be written now. */
  const take = (key: string, given?: Given) => takeTurn(turn, key, daemonSet(key, given));
  /** A DaemonSet of 3 nodes that had rolled out was written: it rolls to its second generation. */
  function roll(key: string): void {
    put(key);
    expect(take(key)).to.equal(true);
    put(key, { generation: 2, observed: 1 });
  }
  return { clock, turn, put, take, roll, unready };
}

describe('the turn of a DaemonSet to roll', () => {
  const seconds: readonly (readonly [what: string, given: Given, needsTurn: boolean])[] = [
    ['any other', {}, true],
    ['one without pods', { desired: 0 }, false],
    ['one that should have no pods but has misscheduled ones on tainted nodes', { desired: 0, misscheduled: 2 }, true],
    ['one with OnDelete', { strategy: 'OnDelete' }, false],
    ['one that is about to roll for a change of its owner', { generation: 4, observed: 3 }, false],
    ['one that is not rolled out, which never ends with a dead node', { available: 2 }, true],
    ['one whose pods cannot be made: nothing would be replaced', { desired: 2, current: 0, available: 0 }, false],
  ];
  for (const [what, given, needsTurn] of seconds) {
    it(`is ${needsTurn ? '' : 'not '}needed by ${what}`, () => {
      const { turn, take, roll } = turns();
      roll('first');
      expect(take('second', given)).to.equal(!needsTurn);
      expect([waitsInLine(turn, 'second'), nextToRoll(turn)]).to.deep.equal([needsTurn, undefined]);
    });
  }

  it('comes when the one before has rolled', () => {
    const { put, take, roll } = turns();
    roll('first');
    put('first', { generation: 2, available: 2 });
    expect(take('second')).to.equal(false);
    put('first', { generation: 2 });
    expect(take('second')).to.equal(true);
  });

  it('never comes because of the time to one of the same namespace, but to one of another', async () => {
    const { clock, turn, put, take, roll } = turns();
    roll('ops/first');
    expect([take('ops/second'), take('shop/a')]).to.deep.equal([false, false]);
    await clock.advance(5 * MINUTE);
    expect(nextToRoll(turn)).to.equal(undefined);
    await clock.advance(1);
    expect([nextToRoll(turn), stopped(turn), stopsAll(turn)]).to.deep.equal(['shop/a', ['ops/first'], []]);
    await clock.advance(60 * MINUTE);
    expect(take('ops/second')).to.equal(false);
    expect([waitsInLine(turn, 'ops/second'), waitsInLine(turn, 'shop/a')]).to.deep.equal([false, true]);
    put('ops/first', { generation: 2 });
    expect([nextToRoll(turn), stopped(turn)]).to.deep.equal(['ops/second', []]);
  });

  it('belongs to one that an earlier leader left rolling, and is never given on by the time', async () => {
    const { clock, put, take } = turns();
    put('ops/first', { rollout: 'awaited 1', available: 1 });
    expect(take('ops/second')).to.equal(false);
    await clock.advance(5 * MINUTE + 1);
    expect([take('ops/second'), take('shop/a')]).to.deep.equal([false, true]);
  });

  for (const [what, given] of [
    ['whose author has changed it since', { rollout: 'awaited 1', generation: 2, available: 1 }],
    ['that an earlier version wrote', { isRecorded: true, available: 1 }],
    ['that had not rolled out when it was written', { rollout: '', available: 1 }],
    ['that archaware never wrote to', { available: 1 }],
    ['without pods that an earlier leader wrote to', { isRecorded: true, available: 0, current: 0 }],
  ] as const) {
    it(`does not belong to one ${what}`, () => {
      const { turn, put, take } = turns();
      put('kube-system/first', given);
      markSeen(turn, 'kube-system/first');
      expect(take('ops/second')).to.equal(true);
    });
  }

  it('belongs to one whose rollout the watch shows only later, but not to one that lost pods after its rollout', () => {
    const { turn, put, take } = turns();
    put('kube-system/first', { rollout: 'awaited 1' });
    markSeen(turn, 'kube-system/first');
    put('ops/a');
    expect(take('ops/a')).to.equal(true);
    put('ops/a', { generation: 2 });
    put('kube-system/first', { rollout: 'awaited 1', available: 1 });
    expect(take('shop/a')).to.equal(true);
    put('shop/a', { generation: 2 });
    put('kube-system/first', { rollout: 'awaited 2', generation: 2, available: 1 });
    expect(take('shop/b')).to.equal(false);
    expect(verdictNow(turn, 'kube-system/first')).to.deep.equal({ kind: 'rolling' });
  });

  it('belongs to one that a read shows rolling, until the watch shows it too', () => {
    const { turn, put, take } = turns();
    put('ops/first');
    expect(take('ops/first')).to.equal(true);
    giveTurnBack(turn, 'ops/first', daemonSet('ops/first', { rollout: 'awaited 2', generation: 2, available: 1 }));
    expect(take('shop/a')).to.equal(false);
    put('ops/first', { rollout: 'awaited 2', generation: 2 });
    expect(take('shop/a')).to.equal(true);
  });

  it('is held by the records of tenants for five minutes in half an hour, however often they write them', async () => {
    const { clock, put, take } = turns();
    const forge = (namespace: string, generation: number) => {
      put(`${namespace}/a`, { generation, rollout: `awaited ${generation}`, available: 1 });
      return take('shop/a');
    };
    expect(forge('one', 2)).to.equal(false);
    await clock.advance(4 * MINUTE);
    expect([forge('one', 3), forge('two', 2)]).to.deep.equal([false, false]);
    await clock.advance(MINUTE + 1);
    expect(forge('one', 4)).to.equal(true);
  });

  it('pauses for half an hour after those of three namespaces in a row that did not come back, and no sooner', async () => {
    const { clock, turn, put, take, roll } = turns();
    const isLate = async (key: string) => {
      roll(key);
      await clock.advance(5 * MINUTE + 1);
      expect(stopped(turn)).to.include(key);
    };
    for (const key of ['one/a', 'two/a']) await isLate(key);
    expect([isPaused(turn), stopsAll(turn)]).to.deep.equal([false, []]);
    roll('ops/good');
    put('ops/good', { generation: 2 });
    for (const key of ['three/a', 'four/a']) await isLate(key);
    expect(isPaused(turn), 'one came back in between').to.equal(false);
    await isLate('five/a');
    expect([isPaused(turn), take('ops/b')]).to.deep.equal([true, false]);
    await clock.advance(30 * MINUTE - 1);
    expect(nextToRoll(turn)).to.equal(undefined);
    await clock.advance(1);
    expect(nextToRoll(turn)).to.equal('ops/b');
  });

  it('is stopped from the start where an earlier leader took its change back', () => {
    const { turn, put, take } = turns();
    put('kube-system/cni', { rollout: 'back 1' });
    expect(take('ops/second')).to.equal(false);
    expect(stopsAll(turn)).to.deep.equal(['kube-system/cni']);
    put('kube-system/cni', { rollout: 'back 1', generation: 2 });
    markSeen(turn, 'kube-system/cni');
    expect([nextToRoll(turn), stopsAll(turn)]).to.deep.equal(['ops/second', []]);
  });

  it('is stopped only for its own namespace where the record of a tenant says that the change was taken back', () => {
    const { turn, put, take } = turns();
    for (const key of ['one/a', 'two/a']) put(key, { rollout: 'back 1' });
    expect([take('one/b'), take('ops/second')]).to.deep.equal([false, true]);
    expect(stopsAll(turn)).to.deep.equal([]);
  });

  it('is kept for 15 seconds only by one that had not rolled out', async () => {
    const { clock, turn, put, take } = turns();
    put('first', { available: 2 });
    expect(take('first', { available: 2 })).to.equal(true);
    put('first', { available: 2, generation: 2 });
    expect(take('second')).to.equal(false);
    await clock.advance(15 * SECOND);
    expect(nextToRoll(turn)).to.equal(undefined);
    await clock.advance(1);
    expect([nextToRoll(turn), take('second')]).to.deep.equal(['second', true]);
  });

  it('is kept by one that had not rolled out, if it loses pods', async () => {
    const { clock, turn, put, take } = turns();
    put('ops/first', { available: 2 });
    take('ops/first', { available: 2 });
    put('ops/first', { generation: 2, current: 2, available: 1, updated: 0 });
    take('shop/a');
    await clock.advance(MINUTE);
    expect(nextToRoll(turn)).to.equal(undefined);
    await clock.advance(4 * MINUTE + 1);
    expect([nextToRoll(turn), stopped(turn)]).to.deep.equal(['shop/a', ['ops/first']]);
  });

  it('is kept by one that an earlier leader waits for, and that has lost all of its pods', async () => {
    const { clock, turn, put, take } = turns();
    put('kube-system/first', { rollout: 'awaited 1', desired: 1, current: 0, available: 0 });
    expect(take('ops/second')).to.equal(false);
    await clock.advance(5 * MINUTE + 1);
    expect(stopsAll(turn)).to.deep.equal(['kube-system/first']);
  });

  it('stays with one that was written without an answer, for five minutes if it was not carried out', async () => {
    const { clock, turn, put, take } = turns();
    put('ops/first');
    expect([take('ops/first'), take('ops/first'), take('shop/a')], 'tried again').to.deep.equal([true, true, false]);
    await clock.advance(5 * MINUTE + 1);
    expect([nextToRoll(turn), stopped(turn)]).to.deep.equal(['shop/a', []]);
  });

  it('stays with one whose second write changes nothing', () => {
    const { turn, put, take, roll } = turns();
    roll('ops/first');
    const rolling = { generation: 2, available: 1, rollout: 'awaited 2' };
    put('ops/first', rolling);
    expect(take('ops/first', rolling)).to.equal(true);
    giveTurnBack(turn, 'ops/first', undefined);
    expect(verdictNow(turn, 'ops/first')).to.deep.equal({ kind: 'rolling' });
    expect(take('shop/a')).to.equal(false);
  });

  it('does not become longer by further writes to the one that has it', async () => {
    const { clock, turn, put, take, roll } = turns();
    roll('ops/first');
    take('shop/second');
    for (let generation = 2; generation < 7; generation++) {
      await clock.advance(MINUTE);
      put('ops/first', { generation, available: 1 });
      expect(take('ops/first', { generation, available: 1 })).to.equal(true);
      expect(nextToRoll(turn)).to.equal(undefined);
    }
    await clock.advance(1);
    expect(take('ops/first', { generation: 7, available: 1 })).to.equal(false);
    expect(nextToRoll(turn)).to.equal('shop/second');
  });

  it('passes on after five minutes although the rollout gets on, but its own namespace waits', async () => {
    const { clock, turn, put, take, roll } = turns();
    roll('ops/first');
    for (const key of ['ops/second', 'shop/a']) take(key);
    for (const updated of [1, 2]) {
      await clock.advance(4 * MINUTE);
      put('ops/first', { generation: 2, updated, available: 2 });
      nextToRoll(turn);
    }
    expect([nextToRoll(turn), stopped(turn)]).to.deep.equal(['shop/a', []]);
    expect(verdictNow(turn, 'ops/first')).to.deep.equal({ kind: 'slow' });
  });

  it('does not wait for pods on nodes that are not ready', () => {
    const { turn, put, take, roll, unready } = turns();
    roll('kube-system/cni');
    put('kube-system/cni', { generation: 2, available: 2 });
    expect(take('ops/a')).to.equal(false);
    unready(1);
    expect(nextToRoll(turn)).to.equal('ops/a');
  });

  it('waits at the start for those that come first, and that nobody has looked at yet', async () => {
    const { clock, turn, put, take } = turns();
    for (const key of ['kube-system/cni', 'ops/a', 'ops/b']) put(key);
    expect(take('ops/a')).to.equal(false);
    const due = ['ops/a', 'ops/b', 'kube-system/cni'].map((key) => markSeen(turn, key));
    expect(due).to.deep.equal([undefined, undefined, 'ops/a']);
    put('kube-system/later');
    expect(nextToRoll(turn)).to.equal(undefined);
    await clock.advance(15 * SECOND + 1);
    expect(nextToRoll(turn)).to.equal('ops/a');
  });

  it('comes to one namespace after the other, and to nobody out of turn', () => {
    const { turn, put, take, roll } = turns();
    roll('first');
    for (const key of ['a/1', 'a/2', 'b/1']) expect(take(key)).to.equal(false);
    put('first', { generation: 2 });
    expect([take('b/1'), take('a/1')]).to.deep.equal([false, true]);
    put('a/1', { generation: 2 });
    expect(nextToRoll(turn)).to.equal('b/1');
  });
});
