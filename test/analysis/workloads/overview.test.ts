import { expect } from 'chai';
import {
  type ClusterSurroundings,
  isOnWrongNode,
  type JudgedWorkload,
  otherDaemonSetNote,
  overviewLines,
  overviewOf,
  untoleratingDaemonSets,
  type WorkloadSubject,
  workloadOf,
} from '../../../src/analysis/workloads/overview.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { place, settings, toleration } from '../../placement/objects.ts';

const CLUSTER: ClusterSurroundings = { architectures: ['amd64', 'arm64'], allTainted: true };

const hold = (...platforms: readonly string[]): WorkloadSubject['decision'] => ({
  kind: 'hold',
  reason: 'no-common-architecture',
  images: platforms.map((platform) => ({ image: platform, platforms: [platform] })),
});
const skip = (reason: 'ignored' | 'terminal' | 'daemon-pod'): WorkloadSubject['decision'] => ({ kind: 'skip', reason });
const NOTHING = { failed: [], againInMs: undefined, givesUpInMs: undefined };
const WAIT: WorkloadSubject['decision'] = { kind: 'wait', images: ['a'], ...NOTHING };

const subject = (
  decision: WorkloadSubject['decision'],
  more: Partial<WorkloadSubject> & { readonly name?: string } = {},
): WorkloadSubject => {
  const { name = 'web', ...rest } = more;
  const workload = { kind: 'Deployment', namespace: 'shop', name };
  const bound = rest.nodeArchitecture !== undefined;
  const free = { tolerations: [], nodeArchitecture: undefined, asked: undefined };
  return { workload, decision, settings: settings(), bound, ...free, ...rest };
};
/** Counts the workloads by what is true of them. */
function countsOf(all: readonly JudgedWorkload[]): object {
  const count = (is: (workload: JudgedWorkload) => boolean) => all.filter(is).length;
  return {
    workloads: all.length,
    anywhere: count(({ reach }) => reach === 'anywhere'),
    nowhere: count(({ reach }) => reach === 'nowhere'),
    unknown: count(({ reach }) => reach === 'unknown'),
    leftAlone: count(({ reach }) => reach === 'left-alone'),
    limited: all.flatMap(({ architectures }) => (architectures === undefined ? [] : architectures.join(', '))),
    onWrongNode: count(({ onWrongNode }) => onWrongNode === true),
    pendingAtRestart: count(({ pendingAtRestart }) => pendingAtRestart),
    pendingNow: count(({ pendingNow }) => pendingNow),
  };
}
const APART = hold('linux/amd64', 'linux/arm64');
/** On a node of this architecture. */
const on = (nodeArchitecture: string, decision: WorkloadSubject['decision'], more: Partial<WorkloadSubject> = {}) =>
  subject(decision, { nodeArchitecture, ...more });
const mode = (name: Settings['mode']) => ({ settings: settings({ mode: name }) });
const asks = (...architectures: string[]) => ({
  asked: { text: 'kubernetes.io/arch=x by its nodeSelector', architectures },
});
const ANYWHERE = subject(place(['amd64', 'arm64']));
const ON_AMD = place(['amd64']);
const OTHERS = place(['amd64', 's390x']);
const AFTER = { pendingAtRestart: 1, pendingNow: 0 };
const NEVER = { pendingAtRestart: 0, pendingNow: 0 };
const ONLY_ARM = { settings: settings({ schedulable: ['arm64'] }) };
const OBSERVE = mode('observe');
const AGENT = { workload: { kind: 'DaemonSet', namespace: 'shop', name: 'agent' } };
const ASKED = 'requires kubernetes.io/arch=x by its nodeSelector';
const tolerating = { tolerations: [{ key: 'supported-arch', operator: 'Exists' }] };

describe('the overview of workloads', () => {
  const rows: readonly (readonly [what: string, subjects: readonly WorkloadSubject[], counts: object])[] = [
    ['counts nothing', [], { workloads: 0, anywhere: 0 }],
    ['runs anywhere', [subject(place(['amd64', 'arm64', 's390x']))], { workloads: 1, anywhere: 1 }],
    ['runs anywhere if its images set no limit', [subject(place([], { followsCluster: true }))], { anywhere: 1 }],
    ['has no node', [subject(place(['s390x']))], { nowhere: 1, pendingNow: 1, pendingAtRestart: 0 }],
    ['is unknown while it waits', [subject(WAIT)], { unknown: 1, pendingNow: 0 }],
    ['is unknown if it was placed on a guess', [subject(place(['amd64'], { unknown: ['a'] }))], { unknown: 1 }],
    ['is one workload for all pods', [subject(WAIT), subject(WAIT)], { workloads: 1, unknown: 1 }],
    ['is as limited as its narrowest pod', [ANYWHERE, subject(place(['arm64']))], { anywhere: 0, limited: ['arm64'] }],
    ['does not count what has finished', [subject(skip('terminal')), subject(skip('daemon-pod'))], { workloads: 0 }],
    ['is Pending if held', [on('arm64', APART)], { nowhere: 1, pendingAtRestart: 1, pendingNow: 0, onWrongNode: 1 }],
    ['would be Pending if it is left alone', [on('arm64', skip('ignored'))], { leftAlone: 1, pendingAtRestart: 1 }],
    ['is not if it tolerates', [on('arm64', skip('ignored'), tolerating)], { leftAlone: 1, pendingAtRestart: 0 }],
    ['is not in the mode affinity', [on('arm64', skip('ignored'), mode('affinity'))], { pendingAtRestart: 0 }],
    ['would be if it asks for another', [on('amd64', ON_AMD, asks('arm64'))], { ...AFTER, limited: ['amd64'] }],
    ['is Pending if it asks for another', [subject(ON_AMD, asks('arm64'))], { pendingAtRestart: 0, pendingNow: 1 }],
    ['would be if no node takes another', [on('arm64', ON_AMD, { next: 'nowhere' })], { ...AFTER, onWrongNode: 1 }],
    ['would be if it asks for what is not here', [on('amd64', OTHERS, asks('s390x'))], { pendingAtRestart: 1 }],
    ['would not if it asks for what they have', [on('arm64', place(['amd64', 'arm64']), asks('arm64'))], NEVER],
    ['not in observe', [on('amd64', ON_AMD, { ...OBSERVE, ...asks('arm64') }), on('amd64', APART, OBSERVE)], NEVER],
    ['creates no Pending pods as a DaemonSet', [subject(hold('linux/s390x'), AGENT)], { nowhere: 1, pendingNow: 0 }],
  ];
  for (const [what, subjects, counts] of rows)
    it(what, () => expect(countsOf(overviewOf(subjects, CLUSTER))).to.deep.include(counts));

  const nodes: readonly (readonly [what: string, of: WorkloadSubject, expected: boolean])[] = [
    ['its node lacks the platform', on('arm64', place(['amd64'])), true],
    ['it has no node', subject(place(['amd64'])), false],
    ['a guess proves nothing', on('arm64', place(['amd64'], { basis: 'open', unknown: ['a'] })), false],
    ['only the configuration excludes the node', on('amd64', place(['arm64']), ONLY_ARM), false],
    ['one held image lacks it', on('amd64', APART), true],
    ['no held image lacks it', on('amd64', hold('linux/amd64')), false],
    ['a held image is compatible', on('amd64', hold('linux/386')), false],
  ];
  for (const [what, of, expected] of nodes)
    it(`${expected ? 'sees' : 'sees no'} wrong node: ${what}`, () => expect(isOnWrongNode(of)).to.equal(expected));

  it('counts nothing as running anywhere on a cluster without nodes', () => {
    const [one] = overviewOf([subject(place(['amd64']))], { architectures: [], allTainted: false });
    expect(one?.reach).to.equal('nowhere');
  });

  it('is five lines', () => {
    const subjects = [
      subject(place(['amd64', 'arm64']), { name: 'a' }),
      subject(place(['amd64']), { name: 'b', nodeArchitecture: 'arm64' }),
      subject(hold('linux/s390x'), { name: 'c', nodeArchitecture: 'amd64' }),
      subject(WAIT, { name: 'd' }),
    ];
    expect(overviewLines(overviewOf(subjects, CLUSTER), 1, ' in namespace shop')).to.deep.equal([
      '4 workloads in namespace shop: 1 can run on every architecture of the cluster',
      '  1 runs on amd64 only, 1 on no node of the cluster',
      '  2 on a wrong node now',
      '  1 would be Pending at its next restart',
      '  1 image unknown',
    ]);
  });

  it('says which architectures belong together where several sets are listed', () => {
    const subjects = [subject(place(['amd64', 'arm64']), { name: 'a' }), subject(place(['s390x']), { name: 'b' })];
    const [, sets] = overviewLines(
      overviewOf(subjects, { ...CLUSTER, architectures: ['amd64', 'arm64', 's390x'] }),
      0,
      '',
    );
    expect(sets).to.equal('  1 runs on amd64 and arm64 only, 1 on s390x only');
  });

  const reasons: readonly (readonly [what: string, of: WorkloadSubject, why: string])[] = [
    ['runs where it should', on('amd64', place(['amd64'])), ''],
    ['is on a wrong node', on('arm64', place(['amd64'])), 'its images run on amd64'],
    ['is held', on('arm64', APART), 'its images have no architecture in common'],
    ['has no node', subject(place(['s390x'])), 'its images run on s390x'],
    ['contradicts itself', subject(ON_AMD, asks('arm64')), `${ASKED}, but its images run on amd64 only`],
    ['asks for what no node has', subject(OTHERS, asks('s390x')), `${ASKED}, and no node of the cluster has that`],
    ['is left alone', subject(skip('ignored')), 'it is labelled archaware.dev/ignore=true, and it tolerates no node'],
  ];
  for (const [what, of, why] of reasons)
    it(`says why: ${what}: ${why || 'nothing'}`, () =>
      expect(overviewOf([of], CLUSTER).map((workload) => workload.why)).to.deep.equal([why]));

  it('is sorted by kind, namespace and name, whatever the order of the pods', () => {
    const names = ['web', 'api', 'db'];
    const of = (order: readonly string[]) =>
      overviewOf(
        order.map((name) => subject(place(['amd64']), { name })),
        CLUSTER,
      ).map(({ name }) => name);
    expect(of(names)).to.deep.equal(['api', 'db', 'web']);
    expect(of([...names].reverse())).to.deep.equal(['api', 'db', 'web']);
  });
});

const KRUISE = 'apps.kruise.io/v1alpha1';

const owned = (kind: string, name: string, labels: Readonly<Record<string, string>> = {}, apiVersion = 'apps/v1') =>
  readPod({
    metadata: { name: 'p', namespace: 'shop', labels, ownerReferences: [{ controller: true, apiVersion, kind, name }] },
  });

describe('the workload of a pod', () => {
  const rows: readonly (readonly [what: string, pod: ReturnType<typeof readPod>, expected: string])[] = [
    ['without an owner is the pod', readPod({ metadata: { name: 'p', namespace: 'shop' } }), 'Pod shop/p'],
    ['of a StatefulSet', owned('StatefulSet', 'db'), 'StatefulSet shop/db'],
    [
      "of an Argo Rollout is the ReplicaSet: its name does not say the Rollout's",
      owned('ReplicaSet', 'web-6d4cf', { 'rollouts-pod-template-hash': '6d4cf' }),
      'ReplicaSet shop/web-6d4cf',
    ],
    ['of a ReplicaSet', owned('ReplicaSet', 'web-6d4cf', { 'pod-template-hash': '6d4cf' }), 'Deployment shop/web'],
    ['of a ReplicaSet without a hash is the ReplicaSet', owned('ReplicaSet', 'web'), 'ReplicaSet shop/web'],
  ];
  for (const [what, pod, expected] of rows) {
    it(what, () => {
      const { kind, namespace, name } = workloadOf(pod);
      expect(`${kind} ${namespace}/${name}`).to.equal(expected);
    });
  }
});

const BOTH = place(['amd64', 'arm64']);
const WRITTEN = [{ manager: 'archaware-controller', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } }];

type Given = {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly tolerates?: readonly string[];
  readonly isOurs?: boolean;
  readonly mode?: Settings['mode'];
  readonly decision?: Parameters<typeof untoleratingDaemonSets>[0] extends Iterable<
    infer P extends { decision: unknown }
  >
    ? P['decision']
    : never;
};

function named({ kind = 'DaemonSet', apiVersion = KRUISE, tolerates = [], isOurs, mode = 'taints', ...more }: Given) {
  const pod = readPod({
    metadata: {
      ...{ namespace: 'shop', name: 'agent-1', managedFields: isOurs ? WRITTEN : [] },
      ownerReferences: [{ controller: true, apiVersion, kind, name: 'agent', uid: 'u' }],
    },
    spec: {
      containers: [{ image: 'a' }],
      tolerations: tolerates.map((value) => toleration(`supported-arch=${value}:NoSchedule`)),
    },
  });
  const decided = { pod, decision: more.decision ?? BOTH, settings: settings({ mode }) };
  return untoleratingDaemonSets([decided, decided]).map(
    ({ missing, ...name }) => `${name.kind} ${name.namespace}/${name.name} lacks ${missing.join(' and ')}`,
  );
}

describe('a DaemonSet whose template archaware does not write', () => {
  const lacks = (...missing: readonly string[]) => [
    `DaemonSet.apps.kruise.io shop/agent lacks ${missing.join(' and ')}`,
  ];
  const [amd64, arm64] = ['amd64', 'arm64'].map((value) => `supported-arch=${value}:NoSchedule`);
  const rows: readonly (readonly [given: string, what: Given, expected: readonly string[]])[] = [
    ['tolerates nothing', {}, lacks(String(amd64), String(arm64))],
    ['tolerates one of two', { tolerates: ['amd64'] }, lacks(String(arm64))],
    ['tolerates both', { tolerates: ['amd64', 'arm64'] }, []],
    ['has both from archaware', { tolerates: ['amd64', 'arm64'], isOurs: true }, lacks(String(amd64), String(arm64))],
    ['is of Kubernetes, and served', { apiVersion: 'apps/v1' }, []],
    ['is a CloneSet, which does not judge taints', { kind: 'CloneSet' }, []],
    ['needs no toleration in the mode affinity', { mode: 'affinity' }, []],
    ['is not decided yet', { decision: { kind: 'skip', reason: 'ignored' } }, []],
  ];
  for (const [given, what, expected] of rows)
    it(`${given}: ${expected.join() || 'not named'}`, () => expect(named(what)).to.deep.equal(expected));

  it('is named with what to do', () => {
    const note = otherDaemonSetNote({
      kind: 'DaemonSet.apps.kruise.io',
      namespace: 'shop',
      name: 'agent',
      missing: ['k=v:NoSchedule'],
    });
    expect(note).to.match(
      /^DaemonSet[.]apps[.]kruise[.]io shop\/agent .*add the tolerations k=v:NoSchedule to its template$/,
    );
  });
});
