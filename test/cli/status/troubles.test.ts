import { expect } from 'chai';
import { type Claim, isConfirmed, newestClaims, readClaim } from '../../../src/cli/status/troubles.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { GUESSED, writeRecord } from '../../../src/placement/objects/daemonset.ts';
import { settings, toleration } from '../../placement/objects.ts';

const event = (given: JsonObject = {}, regarding: JsonObject = {}): JsonObject => ({
  metadata: { namespace: 'shop' },
  reportingController: 'archaware-controller',
  reason: 'WriteRefused',
  note: 'no',
  eventTime: '2026-11-23T12:00:00.000000Z',
  regarding: { kind: 'DaemonSet', namespace: 'shop', name: 'agent', uid: 'u1', ...regarding },
  ...given,
});

describe('an Event of the controller about a trouble', () => {
  it('is read with its object, its note and its time', () => {
    expect(
      readClaim(event({ series: { lastObservedTime: '2026-11-23T12:30:00.000000Z' }, note: 'a\u001bb' })),
    ).to.deep.equal({
      kind: 'DaemonSet',
      namespace: 'shop',
      name: 'agent',
      uid: 'u1',
      reason: 'WriteRefused',
      note: 'a\\u001bb',
      atMs: Date.parse('2026-11-23T12:30:00Z'),
    });
  });

  for (const [what, given] of [
    ['another reason', event({ reason: 'OpenPlacement' })],
    ['another reporter', event({ reportingController: 'kubelet' })],
    ['an object of another namespace', event({}, { namespace: 'kube-system' })],
    ['a node, in a namespace of a tenant', event({}, { kind: 'Node', namespace: undefined })],
  ] as const) {
    it(`is passed over with ${what}`, () => {
      expect(readClaim(given)).to.equal(undefined);
    });
  }

  it('is read in the namespace default if it is about a node', () => {
    const node = event({ metadata: { namespace: 'default' } }, { kind: 'Node', namespace: undefined, name: 'n1' });
    expect(readClaim(node)).to.include({ kind: 'Node', namespace: '', name: 'n1' });
  });
});

const claim = (given: Partial<Claim> = {}): Claim => ({
  kind: 'DaemonSet',
  namespace: 'shop',
  name: 'agent',
  uid: 'u1',
  reason: 'WriteRefused',
  note: 'no',
  atMs: 1,
  ...given,
});

describe('the claims that are looked at', () => {
  it('are the newest of each reason about each object', () => {
    const found = newestClaims([
      claim({ note: 'old' }),
      claim({ note: 'new', atMs: 2 }),
      claim({ reason: 'RolloutStopped' }),
    ]);
    expect(found.map(({ reason, note }) => `${reason} ${note}`)).to.deep.equal([
      'WriteRefused new',
      'RolloutStopped no',
    ]);
  });

  it('are few of each namespace, so that one hides no other', () => {
    const flood = Array.from({ length: 500 }, (_, index) => claim({ name: `x${index}`, atMs: 1000 + index }));
    const found = newestClaims([...flood, claim({ namespace: 'kube-system', name: 'cni' })]);
    expect(found).to.have.length(11);
    expect(found.at(-1)).to.include({ namespace: 'kube-system', name: 'cni' });
  });
});

describe('a claim', () => {
  const tolerates = ['amd64', 'arm64'].map((name) => toleration(`supported-arch=${name}:NoSchedule`));
  const amd = toleration('supported-arch=amd64:NoSchedule');
  const other = toleration('old-key=amd64:NoSchedule');
  const daemonSet = (
    tolerations: readonly JsonObject[],
    status: JsonObject = {},
    metadata: JsonObject = {},
  ): JsonObject => ({
    metadata: { name: 'agent', namespace: 'shop', uid: 'u1', generation: 1, ...metadata },
    spec: { template: { spec: { tolerations, containers: [{ image: 'app' }] } } },
    status: {
      observedGeneration: 1,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberAvailable: 3,
      ...status,
    },
  });
  const recorded = (present: readonly JsonObject[], decided: readonly JsonObject[]): JsonObject => {
    const annotate = (record: string | undefined) =>
      daemonSet(present, {}, { annotations: { 'archaware.dev/tolerations': record } });
    return annotate(writeRecord(decided, [], { images: ['app'], subject: 'x' }));
  };
  const takenBack = (generation: number) =>
    daemonSet([], {}, { annotations: { 'archaware.dev/tolerations': writeRecord([], [], basis(generation)) } });
  const basis = (generation: number) => ({ ...GUESSED, rollout: `back ${generation}` });
  const pod = (spec: JsonObject, status: JsonObject = {}): JsonObject => ({
    metadata: { name: 'web-1', namespace: 'shop', uid: 'u1' },
    spec: { containers: [], ...spec },
    status,
  });
  const owner = (kind: string, given: JsonObject) => ({ kind, metadata: { uid: 'u1' }, ...given });
  const onArm = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
  const refusedAffinity = {
    kind: 'ReplicaSet',
    reason: 'RefusedByPolicy',
    note: 'the refusal names node affinity',
  } as const;
  type Row = [what: string, given: Partial<Claim>, object: JsonObject, expected: boolean, pods?: readonly JsonObject[]];
  const rows: Row[] = [
    ['a DaemonSet without its tolerations', {}, daemonSet([]), true],
    ['a DaemonSet that has them by now', {}, daemonSet(tolerates), false],
    ['a DaemonSet of one architecture that has its toleration by now', {}, recorded([amd], [amd]), false],
    ['a DaemonSet that lost the tolerations of its record', {}, recorded([], [amd]), true],
    ['a DaemonSet that has the tolerations of another key', {}, recorded([other], [other]), true],
    ['a DaemonSet whose record is a guess', {}, daemonSet([amd]), true],
    ['a DaemonSet that tolerates everything', {}, daemonSet([{ operator: 'Exists' }]), false],
    ['another DaemonSet of the same name', { uid: 'u0' }, daemonSet([]), false],
    ['a DaemonSet that is being deleted', {}, daemonSet([], {}, { deletionTimestamp: 'x' }), false],
    ['a stopped rollout', { reason: 'RolloutStopped' }, daemonSet(tolerates, { numberAvailable: 2 }), true],
    ['a rollout that is complete again', { reason: 'RolloutStopped' }, daemonSet(tolerates), false],
    ['a rollout that was taken back', { reason: 'RolloutStopped' }, takenBack(1), true],
    ['what was refused in a rollout that was taken back', { reason: 'RefusedByPolicy' }, takenBack(1), true],
    ['a rollout before its author changed the DaemonSet', { reason: 'RolloutStopped' }, takenBack(0), false],
    ['a taint held back', { reason: 'TaintHeldBack' }, daemonSet([]), true],
    ['a taint held back no more', { reason: 'TaintHeldBack' }, daemonSet(tolerates), false],
    ['a node without the taint', { kind: 'Node', name: 'n1', reason: 'WriteContested' }, {}, true],
    ['a node with the taint', { kind: 'Node', name: 'n2', reason: 'WriteContested' }, {}, false],
    ['a gated pod', { kind: 'Pod' }, pod({ schedulingGates: [{ name: 'archaware.dev/architecture' }] }), true],
    ['a pod without tolerations', { kind: 'Pod' }, pod({}), true],
    ['a pod with some of them', { kind: 'Pod' }, pod({ tolerations: tolerates.slice(0, 1) }), false],
    ['a pod that has ended', { kind: 'Pod' }, pod({}, { phase: 'Failed' }), false],
    [
      'a ReplicaSet with too few pods',
      { kind: 'ReplicaSet' },
      owner('ReplicaSet', { spec: { replicas: 2 }, status: { replicas: 1 } }),
      true,
    ],
    [
      'a ReplicaSet with its pods',
      { kind: 'ReplicaSet' },
      owner('ReplicaSet', { spec: { replicas: 2 }, status: { replicas: 2 } }),
      false,
    ],
    [
      'a ReplicaSet whose pods lack tolerations',
      { kind: 'ReplicaSet' },
      owner('ReplicaSet', { spec: { replicas: 0 } }),
      true,
      [pod({})],
    ],
    [
      'a ReplicaSet whose pods lack affinity',
      refusedAffinity,
      owner('ReplicaSet', { spec: { replicas: 0 } }),
      true,
      [pod({ tolerations: tolerates })],
    ],
    [
      'a ReplicaSet whose pods have both',
      refusedAffinity,
      owner('ReplicaSet', { spec: { replicas: 0 } }),
      false,
      [pod({ tolerations: tolerates, ...onArm })],
    ],
    ['a Job without a pod', { kind: 'Job' }, owner('Job', { spec: {}, status: {} }), true],
    [
      'a Job that is complete',
      { kind: 'Job' },
      owner('Job', { spec: {}, status: { conditions: [{ type: 'Complete', status: 'True' }] } }),
      false,
    ],
    ['a suspended Job', { kind: 'Job' }, owner('Job', { spec: { suspend: true } }), false],
  ];
  for (const [what, given, object, expected, pods = []] of rows) {
    it(`about ${what}: ${expected ? 'is a problem' : 'is none'}`, () => {
      const confirming = {
        settings: settings({ mode: 'both' }),
        lacking: new Set(['n1']),
        architectures: ['amd64', 'arm64'],
      };
      expect(isConfirmed(claim(given), object, pods, confirming)).to.equal(expected);
    });
  }
});
