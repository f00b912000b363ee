import { expect } from 'chai';
import { createRolloutTurn } from '../../../src/controllers/daemonset/rollout.ts';
import { createStore } from '../../../src/kube/watch/store.ts';
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
  strategy?: string;
  /** Whether archaware wrote to it before. */
  isRecorded?: boolean;
};

function daemonSet(name: string, given: Given = {}): DaemonSet {
  const { generation = 1, observed = generation, desired = 3, available = desired, misscheduled = 0, strategy } = given;
  const { current = desired } = given;
  const annotations = given.isRecorded ? { 'archaware.dev/tolerations': '[]' } : {};
  return readDaemonSet({
    metadata: { namespace: 'ops', name, uid: name, generation, annotations },
    spec: { updateStrategy: { type: strategy } },
    status: {
      observedGeneration: observed,
      desiredNumberScheduled: desired,
      currentNumberScheduled: current,
      numberMisscheduled: misscheduled,
      updatedNumberScheduled: available,
      numberAvailable: available,
    },
  });
}

function turns() {
  const clock = createHandClock();
  const store = createStore<DaemonSet>();
  const turn = createRolloutTurn(store, clock, (namespace) => namespace === 'kube-system');
  const put = (subject: DaemonSet) => store.put(subject.name, subject);
  /** The first DaemonSet was written: it rolls to its second generation. */
  function firstRolls(): void {
    put(daemonSet('first'));
    turn.take('first', daemonSet('first'));
    put(daemonSet('first', { generation: 2, observed: 1 }));
  }
  return { clock, store, turn, put, firstRolls };
}

describe('the turn of a DaemonSet to roll', () => {
  it('comes at once if no DaemonSet rolls', () => {
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

  it('does not come from the state of the one before, as it was before the write', () => {
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

  it('comes after five minutes at the latest', async () => {
    const { clock, turn, firstRolls } = turns();
    firstRolls();
    await clock.advance(5 * MINUTE);
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    await clock.advance(1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('still belongs to the one that rolls', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('first', daemonSet('first', { generation: 2 }))).to.equal(true);
  });

  it('is not needed by one without pods, or with OnDelete', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { desired: 0 }))).to.equal(true);
    expect(turn.take('third', daemonSet('third', { strategy: 'OnDelete' }))).to.equal(true);
  });

  it('is needed by one that should have no pods but has misscheduled ones on tainted nodes', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { desired: 0, misscheduled: 2 }))).to.equal(false);
  });

  it('belongs to one that an earlier leader left rolling', async () => {
    const { clock, turn, put } = turns();
    put(daemonSet('first', { isRecorded: true, available: 1 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(false);
    await clock.advance(5 * MINUTE + 1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('waits only once for one that an earlier leader left rolling, even if the first write then fails', async () => {
    const { clock, turn, put } = turns();
    put(daemonSet('first', { isRecorded: true, available: 1 }));
    turn.take('second', daemonSet('second'));
    await clock.advance(5 * MINUTE + 1);
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
    turn.giveBack('second');
    expect(turn.take('third', daemonSet('third'))).to.equal(true);
  });

  it('is not kept by one with OnDelete', () => {
    const { turn, put } = turns();
    put(daemonSet('first', { available: 1 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('is not needed by one that is about to roll for a change of its owner', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { generation: 4, observed: 3 }))).to.equal(true);
  });

  it('is needed by one that is not rolled out, which never ends with a dead node', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    expect(turn.take('second', daemonSet('second', { available: 2 }))).to.equal(false);
  });

  it('is not needed by one whose pods cannot be made: nothing would be replaced', () => {
    const { turn, firstRolls } = turns();
    firstRolls();
    const never = daemonSet('second', { desired: 2, current: 0, available: 0 });
    expect(turn.take('second', never)).to.equal(true);
    expect([turn.waits('second'), turn.next()]).to.deep.equal([false, undefined]);
  });

  for (const [what, before] of [
    ['that crashes', { available: 0 }],
    ['whose author is rolling it out', { available: 2 }],
  ] as const) {
    it(`is kept for 15 seconds only by one ${what}`, async () => {
      const { clock, turn, put } = turns();
      put(daemonSet('first', before));
      expect(turn.take('first', daemonSet('first', before))).to.equal(true);
      put(daemonSet('first', { ...before, generation: 2 }));
      expect(turn.take('second', daemonSet('second'))).to.equal(false);
      await clock.advance(15 * SECOND);
      expect(turn.next()).to.equal(undefined);
      await clock.advance(1);
      expect(turn.next()).to.equal('second');
      expect(turn.take('second', daemonSet('second'))).to.equal(true);
    });
  }

  it('is not kept by one without pods that an earlier leader wrote to', () => {
    const { turn, put } = turns();
    put(daemonSet('first', { isRecorded: true, available: 0, current: 0 }));
    expect(turn.take('second', daemonSet('second'))).to.equal(true);
  });

  it('does not become longer by further writes to the one that has it', async () => {
    const { clock, turn, put, firstRolls } = turns();
    firstRolls();
    turn.take('second', daemonSet('second'));
    for (let generation = 2; generation < 7; generation++) {
      await clock.advance(MINUTE);
      put(daemonSet('first', { generation, available: 1 }));
      expect(turn.take('first', daemonSet('first', { generation, available: 1 }))).to.equal(true);
      expect(turn.next()).to.equal(undefined);
    }
    await clock.advance(1);
    expect(turn.take('first', daemonSet('first', { generation: 7, available: 1 }))).to.equal(false);
    expect(turn.next()).to.equal('second');
  });

  it('comes to system namespaces first, and else to one namespace after the other', () => {
    const { turn, put } = turns();
    const roll = (key: string) => turn.take(key, daemonSet(key));
    put(daemonSet('ops/first'));
    roll('ops/first');
    put(daemonSet('ops/first', { generation: 2, available: 1 }));
    const tenants = Array.from({ length: 200 }, (_, index) => `tenant/d${index}`);
    for (const key of [...tenants, 'ops/b', 'infra/a', 'infra/b', 'kube-system/a', 'ops/c', 'kube-system/b']) {
      expect(roll(key)).to.equal(false);
    }
    put(daemonSet('ops/first', { generation: 2 }));
    const order: (string | undefined)[] = [];
    for (let index = 0; index < 10; index++) {
      const key = turn.next();
      order.push(key);
      if (key === undefined) break;
      expect(roll('tenant/d199'), 'out of turn').to.equal(false);
      expect(roll(key)).to.equal(true);
      put(daemonSet(key, { generation: 2 }));
    }
    expect(order).to.deep.equal([
      ...['kube-system/a', 'kube-system/b'],
      ...['tenant/d0', 'ops/b', 'infra/a', 'tenant/d1', 'ops/c', 'infra/b', 'tenant/d2', 'tenant/d3'],
    ]);
  });

  it('passes over one that left the line', () => {
    const { turn, put, firstRolls } = turns();
    firstRolls();
    turn.take('second', daemonSet('second'));
    turn.take('third', daemonSet('third'));
    turn.leave('second');
    put(daemonSet('first', { generation: 2 }));
    expect([turn.waits('second'), turn.waits('third'), turn.next()]).to.deep.equal([false, true, 'third']);
  });

  it('is returned if nothing was written', () => {
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
