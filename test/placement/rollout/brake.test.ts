import { expect } from 'chai';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { isUnproven, judge, type Rollout, recordedRollout } from '../../../src/placement/rollout/brake.ts';

const MINUTE = 60_000;
const LATE = 5 * MINUTE + 1;

/** A DaemonSet of four nodes that was written at generation 2. */
function daemonSet(
  given: Partial<Pick<DaemonSet, 'generation' | 'desired' | 'current' | 'updated' | 'available'>> & {
    seen?: number;
  } = {},
): DaemonSet {
  const { generation = 2, seen = generation, desired = 4, current = 4, updated = 4, available = 4 } = given;
  return readDaemonSet({
    metadata: { namespace: 'ops', name: 'agent', uid: 'u', generation },
    status: {
      observedGeneration: seen,
      desiredNumberScheduled: desired,
      currentNumberScheduled: current,
      updatedNumberScheduled: updated,
      numberAvailable: available,
    },
  });
}

const NEW = { isAwaited: false };
const LOST = { updated: 0, current: 3, available: 2 };
const BEGUN: Rollout = {
  uid: 'u',
  generation: 2,
  begunAt: 0,
  isAwaited: true,
  currentBefore: 4,
  progress: 0,
  progressAt: 0,
  isTakenBack: false,
  isAdopted: false,
};

describe('the verdict on a rollout', () => {
  const rows: [
    what: string,
    given: Parameters<typeof daemonSet>[0],
    after: number,
    rollout: Partial<Rollout>,
    verdict: string,
    isSystem?: true,
  ][] = [
    ['is back', {}, 0, {}, 'over'],
    ['is not seen by its controller', { seen: 1 }, 0, {}, 'rolling'],
    ['is not shown by the watch', { generation: 1 }, 0, {}, 'rolling'],
    ['was changed by its author', { generation: 3, seen: 2, updated: 0 }, LATE, {}, 'over'],
    ['replaces pods', { updated: 1, available: 3 }, 5 * MINUTE, {}, 'rolling'],
    ['replaces pods for long, and gets on', { updated: 2, available: 3 }, LATE, { progressAt: MINUTE }, 'slow'],
    ['is of the system, and gets on', { updated: 2, available: 3 }, LATE, { progressAt: MINUTE }, 'rolling', true],
    ['is of the system, and gets no further', { updated: 2, available: 3 }, LATE, {}, 'stopped: not ready', true],
    ['was never written, after a write without an answer', { generation: 1 }, LATE, {}, 'over'],
    ['has a pod that does not get ready', { updated: 1, available: 3 }, LATE, {}, 'stopped: not ready'],
    ['gets no pod', { updated: 0, current: 3, available: 3 }, LATE, {}, 'stopped: missing'],
    ['gets no pod beside the old one (surge)', { updated: 0 }, LATE, {}, 'stopped: missing'],
    ['lost all pods at once', { updated: 0, current: 0, available: 0 }, LATE, {}, 'stopped: missing'],
    ['was not rolled out before', { updated: 1, available: 3 }, 15_001, { isAwaited: false }, 'over'],
    ['was not rolled out before, a moment ago', { updated: 1, available: 3 }, 15_000, { isAwaited: false }, 'rolling'],
    ['was not rolled out before, and loses pods', LOST, MINUTE, NEW, 'rolling'],
    ['was not rolled out before, and lost pods', LOST, LATE, NEW, 'stopped: missing'],
    ['is as its author wrote it again', {}, LATE, { isTakenBack: true }, 'stopped: missing'],
    ['was taken back, and changed by its author', { generation: 3 }, LATE, { isTakenBack: true }, 'over'],
    ['wants no pod any more', { desired: 0, current: 0, updated: 0, available: 0 }, LATE, {}, 'over'],
  ];
  const at = (now: number, unready = 0, isSystem = false) => ({ now, unready: () => unready, isSystem });
  for (const [what, given, after, rollout, verdict, isSystem] of rows) {
    it(`of a DaemonSet that ${what}: ${verdict}`, () => {
      const found = judge({ ...BEGUN, ...rollout }, daemonSet(given), at(after, 0, isSystem));
      const detail = found.kind === 'stopped' ? `: ${found.missing ? 'missing' : 'not ready'}` : '';
      expect(found.kind + detail).to.equal(verdict);
    });
  }

  it('is over for one that is gone, or another one of the same name', () => {
    const over = { kind: 'over', isBack: false };
    expect(judge(BEGUN, undefined, at(LATE))).to.deep.equal(over);
    expect(judge({ ...BEGUN, uid: 'other' }, daemonSet({ updated: 0 }), at(LATE))).to.deep.equal(over);
  });

  it('leaves out pods on nodes that are not ready', () => {
    const waits = daemonSet({ available: 3 });
    expect(judge(BEGUN, waits, at(0, 1))).to.deep.equal({ kind: 'over', isBack: true });
    expect(judge(BEGUN, daemonSet({ available: 2 }), at(0, 1)).kind).to.equal('rolling');
  });
});

describe('a change of which nothing shows that it is let in', () => {
  const rows: [
    what: string,
    is: boolean,
    given: Parameters<typeof daemonSet>[0],
    rollout: Partial<Rollout>,
    now: number,
  ][] = [
    ['no pod is new', true, { updated: 0, available: 3 }, {}, MINUTE],
    ['it is not seen yet', true, { seen: 1 }, {}, MINUTE],
    ['one pod is new', false, { updated: 1, available: 3 }, {}, MINUTE],
    ['taken back, and a pod is lost', true, { updated: 3, available: 3, current: 3 }, { isTakenBack: true }, LATE],
    ['it was taken back, and all pods are there', false, {}, { isTakenBack: true }, LATE],
    ['it takes too long', false, { updated: 0 }, {}, 8 * MINUTE],
    ['nobody waits for it', false, { updated: 0 }, { isAwaited: false }, MINUTE],
    ['its author changed it', false, { generation: 3, updated: 0 }, {}, MINUTE],
  ];
  for (const [what, is, given, rollout, now] of rows)
    it(`${what}: ${is}`, () => expect(isUnproven({ ...BEGUN, ...rollout }, daemonSet(given), now)).to.equal(is));
});

describe('the rollout that a record names', () => {
  const [now, wall] = [1_000 * MINUTE, 9_000 * MINUTE];
  const NEVER = Number.NEGATIVE_INFINITY;
  const recorded = (rollout: string, more: Partial<DaemonSet> = {}): DaemonSet => ({
    ...daemonSet({ updated: 0 }),
    recorded: JSON.stringify({ images: [], subject: '', rollout, tolerations: [] }),
    ...more,
  });
  /** Minutes since it began, and since it came further. */
  const ages = (subject: DaemonSet) => {
    const { begunAt = NEVER, progressAt = NEVER } = recordedRollout(subject, { now, wall }) ?? {};
    return [now - begunAt, now - progressAt].map((ms) => ms / MINUTE);
  };
  const written = (minutes: number) => ({ index: 0, ownsSpec: false, at: wall - minutes * MINUTE });
  const rows: [what: string, more: Partial<DaemonSet>, begun: number, progress: number][] = [
    ['two minutes ago', { entry: written(2) }, 2, 2],
    ['long ago, and is looked at for half a minute first', { entry: written(20) }, 20, 4.5],
    ['two minutes ago, and came further', { entry: { ...written(2), statusAt: wall - MINUTE }, updated: 1 }, 2, 1],
    ['so long ago that its pods may have been lost since', { entry: written(40) }, 0, 0],
    ['at a time that nobody knows', {}, 0, 0],
    ['in the future, by another clock', { entry: written(-60) }, 0, 0],
  ];
  for (const [what, more, begun, progress] of rows)
    it(`begins when archaware wrote to it: ${what}`, () =>
      expect(ages(recorded('awaited 2', more))).to.deep.equal([begun, progress]));

  it('is awaited or taken back at the generation that it names, and none otherwise', () => {
    const kinds = (subject: DaemonSet) => {
      const { isAwaited, isTakenBack } = recordedRollout(subject, { now, wall }) ?? {};
      return [isAwaited, isTakenBack];
    };
    expect(kinds(recorded('awaited 2'))).to.deep.equal([true, false]);
    expect(kinds(recorded('back 2'))).to.deep.equal([false, true]);
    expect(kinds(recorded('awaited 1'))).to.deep.equal([undefined, undefined]);
    expect(kinds(recorded('awaited 2', { updateStrategy: 'OnDelete' }))).to.deep.equal([undefined, undefined]);
  });
});
