import { expect } from 'chai';
import { type DaemonSet, readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import {
  holdsTaint,
  isUnfit,
  isUnproven,
  judge,
  type Late,
  type Rollout,
  stoppingAll,
  type Want,
} from '../../../src/placement/rollout/brake.ts';

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
  ][] = [
    ['is back', {}, 0, {}, 'over'],
    ['is not seen by its controller', { seen: 1 }, 0, {}, 'rolling'],
    ['is not shown by the watch', { generation: 1 }, 0, {}, 'rolling'],
    ['was changed by its author', { generation: 3, seen: 2, updated: 0 }, LATE, {}, 'over'],
    ['replaces pods', { updated: 1, available: 3 }, 5 * MINUTE, {}, 'rolling'],
    ['replaces pods for long, and gets on', { updated: 2, available: 3 }, LATE, { progressAt: MINUTE }, 'slow'],
    ['has a pod that does not get ready', { updated: 1, available: 3 }, LATE, {}, 'stopped: not ready'],
    ['gets no pod', { updated: 0, current: 3, available: 3 }, LATE, {}, 'stopped: missing'],
    ['gets no pod beside the old one (surge)', { updated: 0 }, LATE, {}, 'stopped: missing'],
    ['lost all pods at once', { updated: 0, current: 0, available: 0 }, LATE, {}, 'stopped: missing'],
    ['was not rolled out before', { updated: 1, available: 3 }, 15_001, { isAwaited: false }, 'over'],
    ['was not rolled out before, a moment ago', { updated: 1, available: 3 }, 15_000, { isAwaited: false }, 'rolling'],
    [
      'was not rolled out before, and loses pods',
      { updated: 0, current: 3, available: 2 },
      MINUTE,
      { isAwaited: false },
      'rolling',
    ],
    [
      'was not rolled out before, and lost pods',
      { updated: 0, current: 3, available: 2 },
      LATE,
      { isAwaited: false },
      'stopped: missing',
    ],
    ['is as its author wrote it again', {}, LATE, { isTakenBack: true }, 'stopped: missing'],
    ['was taken back, and changed by its author', { generation: 3 }, LATE, { isTakenBack: true }, 'over'],
    ['wants no pod any more', { desired: 0, current: 0, updated: 0, available: 0 }, LATE, {}, 'over'],
  ];
  for (const [what, given, after, rollout, verdict] of rows) {
    it(`of a DaemonSet that ${what}: ${verdict}`, () => {
      const found = judge({ ...BEGUN, ...rollout }, daemonSet(given), after, () => 0);
      const detail = found.kind === 'stopped' ? `: ${found.missing ? 'missing' : 'not ready'}` : '';
      expect(found.kind + detail).to.equal(verdict);
    });
  }

  it('is over for one that is gone, or another one of the same name', () => {
    expect(judge(BEGUN, undefined, LATE, () => 0)).to.deep.equal({ kind: 'over' });
    expect(judge({ ...BEGUN, uid: 'other' }, daemonSet({ updated: 0 }), LATE, () => 0)).to.deep.equal({ kind: 'over' });
  });

  it('leaves out pods on nodes that are not ready', () => {
    const waits = daemonSet({ available: 3 });
    expect(judge(BEGUN, waits, 0, () => 1).kind).to.equal('over');
    expect(judge(BEGUN, daemonSet({ available: 2 }), 0, () => 1).kind).to.equal('rolling');
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
    [
      'it was taken back, and the lost pod is not there',
      true,
      { updated: 3, available: 3, current: 3 },
      { isTakenBack: true },
      LATE,
    ],
    ['it was taken back, and all pods are there', false, {}, { isTakenBack: true }, LATE],
    ['it takes too long', false, { updated: 0 }, {}, 8 * MINUTE],
    ['nobody waits for it', false, { updated: 0 }, { isAwaited: false }, MINUTE],
    ['its author changed it', false, { generation: 3, updated: 0 }, {}, MINUTE],
  ];
  for (const [what, is, given, rollout, now] of rows) {
    it(`${what}: ${is}`, () => expect(isUnproven({ ...BEGUN, ...rollout }, daemonSet(given), now)).to.equal(is));
  }
});

describe('a DaemonSet that is late', () => {
  const late = (namespace: string, verdict: 'slow' | 'missing' | 'not ready', more: Partial<Late> = {}): Late => ({
    key: `${namespace}/agent`,
    namespace,
    isSystemNamespace: namespace.startsWith('kube-'),
    hasSystemClass: false,
    isAdopted: false,
    verdict: verdict === 'slow' ? { kind: 'slow' } : { kind: 'stopped', missing: verdict === 'missing' },
    ...more,
  });
  const rows: [what: string, late: Late[], stops: string[]][] = [
    ['of a tenant, without pods', [late('a', 'missing')], []],
    ['of two tenants, without pods', [late('a', 'missing'), late('b', 'missing')], ['a/agent', 'b/agent']],
    ['twice of one tenant, without pods', [late('a', 'missing'), late('a', 'missing')], []],
    ['of two tenants, with pods that are not ready', [late('a', 'not ready'), late('b', 'not ready')], []],
    ['of two tenants, one of them without pods', [late('a', 'missing'), late('b', 'not ready')], []],
    [
      'of two tenants, by the records that they could write',
      [late('a', 'missing', { isAdopted: true }), late('b', 'missing')],
      [],
    ],
    ['of the system, without pods', [late('kube-system', 'missing')], ['kube-system/agent']],
    ['of the system, with pods that are not ready', [late('kube-system', 'not ready')], ['kube-system/agent']],
    ['of the system, slow', [late('kube-system', 'slow')], ['kube-system/agent']],
    [
      'of the system, found by a new leader',
      [late('kube-system', 'missing', { isAdopted: true })],
      ['kube-system/agent'],
    ],
    ['with a system class, without pods', [late('a', 'missing', { hasSystemClass: true })], ['a/agent']],
    ['with a system class, with pods that are not ready', [late('a', 'not ready', { hasSystemClass: true })], []],
  ];
  for (const [what, given, stops] of rows) {
    it(`${what}: stops ${stops.length === 0 ? 'its own namespace only' : 'all'}`, () =>
      expect(stoppingAll(given).map(({ key }) => key)).to.deep.equal(stops));
  }
});

describe('a DaemonSet without its tolerations', () => {
  const rows: [want: Want, tenant: boolean, system: boolean][] = [
    ['refused', true, true],
    ['unfit', false, true],
    ['contested', false, true],
    ['in-line', false, true],
    ['failed', false, true],
  ];
  for (const [want, tenant, system] of rows) {
    it(`because it is ${want} holds the taint back: ${tenant} for a tenant, ${system} for the system`, () =>
      expect([holdsTaint(want, false), holdsTaint(want, true)]).to.deep.equal([tenant, system]));
  }
});

describe('a refused write', () => {
  const request = 'PATCH /apis/apps/v1/namespaces/ops/daemonsets/agent';
  const invalid =
    'DaemonSet.apps "agent" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes';
  const denied = `daemonsets.apps "agent" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`;
  const guarded = denied.replaceAll("'p'", "'archaware-guard-daemonsets'");
  const rows: [what: string, status: number, message: string, isLarge: boolean, isOwnDoing: boolean][] = [
    ['an object that is not valid', 422, invalid, false, true],
    ['a policy', 422, denied, false, false],
    ['a policy that quotes what the author wrote', 422, denied.replace('no', invalid), false, false],
    ['a value that reads like a policy', 422, `${invalid} denied request`, false, true],
    ['a policy that answers 403', 403, denied, false, false],
    ['a policy, for an object that is large', 422, denied, true, true],
    ['missing rights', 403, 'daemonsets.apps "agent" is forbidden: User "x" cannot patch resource', false, false],
    ['missing rights, for an object that is large', 403, 'forbidden: User "x" cannot patch resource', true, false],
    ['a request that is too large', 413, 'Request entity too large: limit is 3145728', false, true],
    ['etcd, for its size', 500, 'etcdserver: request is too large', false, true],
    ['a webhook that is down', 500, 'Internal error occurred: failed calling webhook "x"', false, false],
    ['a webhook', 400, 'admission webhook "x" denied the request: no', false, false],
  ];
  for (const [what, status, message, isLarge, isOwnDoing] of rows) {
    it(`by ${what} is ${isOwnDoing ? '' : 'not '}the author's own doing`, () =>
      expect(isUnfit({ status, message: `${request}: ${status} ${message}` }, { isLarge, isRecorded: false })).to.equal(
        isOwnDoing,
      ));
  }

  it("by archaware's own policy is the author's own doing only if there is a record, which can be forged", () => {
    const is = (text: string, isRecorded: boolean) =>
      isUnfit({ status: 422, message: `${request}: 422 ${text}` }, { isLarge: false, isRecorded });
    expect([is(guarded, true), is(guarded, false), is(denied, true)]).to.deep.equal([true, false, false]);
    expect(is(denied.replace('no', guarded), true), 'quoted by another one').to.equal(false);
  });
});
