import { expect } from 'chai';
import { createRolloutTurn } from '../../../src/controllers/daemonset/rollout.ts';
import { createStore } from '../../../src/kube/watch/store.ts';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { createHandClock } from '../hand-clock.ts';

const MINUTE = 60_000;

type Given = {
  generation?: number;
  observed?: number;
  desired?: number;
  available?: number;
  misscheduled?: number;
  strategy?: string;
  /** Whether archaware wrote it before. */
  isRecorded?: boolean;
};

function daemonSet(name: string, given: Given = {}): DaemonSet {
  const { generation = 1, observed = generation, desired = 3, available = desired, misscheduled = 0, strategy } = given;
  const annotations = given.isRecorded ? { 'archaware.dev/tolerations': '[]' } : {};
  return readDaemonSet({
    metadata: { namespace: 'ops', name, uid: name, generation, annotations },
    spec: { updateStrategy: { type: strategy } },
    status: {
      observedGeneration: observed,
      desiredNumberScheduled: desired,
      currentNumberScheduled: desired,
      numberMisscheduled: misscheduled,
      updatedNumberScheduled: available,
      numberAvailable: available,
    },
  });
}

function turns() {
  const clock = createHandClock();
  const store = createStore<DaemonSet>();
  const turn = createRolloutTurn(store, clock);
  const put = (subject: DaemonSet) => store.put(subject.name, subject);
  /** The first was written: it rolls to its second generation. */
  function firstRolls(): void {
    put(daemonSet('first'));
    turn.take('first', daemonSet('first'));
    put(daemonSet('first', { generation: 2, observed: 1 }));
  }
  return { clock, store, turn, put, firstRolls };
}

describe('the turn of a DaemonSet to roll', () => {
  it('comes at once where none rolls', () => {
    const { turn } = turns();
    expect(turn.take('first', daemonSet('first'))).to.equal(true);
  });

  it('waits for the one before', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
  });

  it('comes when the one before has rolled', () => {
    const { turn, put, firstRolls } = turns();
    firstRolls();
    put(daemonSet('first', { generation: 2, available: 2 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    put(daemonSet('first', { generation: 2 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('does not come by what the one before was like before it was written', () => {
    const { turn, put } = turns();
    put(daemonSet('first'));
    turn.take('first', daemonSet('first'));
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
  });

  it('comes when the one before is gone', () => {
    const { turn, store, firstRolls } = turns();
    firstRolls();
    store.delete('first');
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('comes after five minutes, whatever became of the one before', async () => {
    const { clock, turn, firstRolls } = turns();
    firstRolls();
    await clock.advance(5 * MINUTE);
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    await clock.advance(1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('is still that of the one that rolls', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('first', daemonSet('first', { generation: 2 }))).to.equal(true);
  });

  it('is not asked for by one without pods, or one that only its owner rolls', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { desired: 0 }))).to.equal(true);
    expect(turn.take('third', daemonSet('third', { strategy: 'OnDelete' }))).to.equal(true);
  });

  it('is waited for by one that should have no pods and still has some: on nodes that are tainted they are misscheduled', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { desired: 0, misscheduled: 2 }))).to.equal(false);
  });

  it('is that of one which a leader before this one left rolling', async () => {
    const { clock, turn, put } = turns();
    put(daemonSet('first', { isRecorded: true, available: 1 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    await clock.advance(5 * MINUTE + 1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('is waited for once only where a leader before this one left one rolling, also when the first write then fails', async () => {
    const { clock, turn, put } = turns();
    put(daemonSet('first', { isRecorded: true, available: 1 }));
    turn.take('second', daemonSet('second'));
    await clock.advance(5 * MINUTE + 1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
    turn.giveBack('second');
    expect(turn.take('third', daemonSet('third'))).to.equal(true);
  });

  it('is not held by one that only its owner rolled', () => {
    const { turn, put } = turns();
    put(daemonSet('first', { available: 1 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('is not asked for by one that is about to roll for a change of its owner', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { generation: 4, observed: 3 }))).to.equal(true);
  });

  it('is waited for by one that is not rolled out, as with a dead node none ever is', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { available: 2 }))).to.equal(false);
  });

  it('goes back where nothing was written', () => {
    const { turn, put } = turns();
    put(daemonSet('first'));
    turn.take('first', daemonSet('first'));
    turn.giveBack('second');
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    turn.giveBack('first');
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('passes from one to the next', () => {
    const { turn, put, firstRolls } = turns();
    firstRolls();
    put(daemonSet('first', { generation: 2 }));
    put(daemonSet('second', { generation: 4 }));
    expect(turn.take('second', daemonSet('second', { generation: 4 }))).to.equal(true);
    put(daemonSet('second', { generation: 5, observed: 4 }));
    expect(turn.take('third', daemonSet('third'))).to.equal(false);
    put(daemonSet('second', { generation: 6 }));
    expect(turn.take('third', daemonSet('third'))).to.equal(true);
  });
});
