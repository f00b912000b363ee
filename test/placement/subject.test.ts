import { expect } from 'chai';
import { accessFor } from '../../src/controllers/image-source.ts';
import { isSame, type JsonObject } from '../../src/kit/json.ts';
import { decide } from '../../src/placement/decide.ts';
import { settingsFor } from '../../src/placement/eligibility.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { placingFor, recordBasis, standingArchitectures, standingTemplate } from '../../src/placement/placing.ts';
import { contradictionOf } from '../../src/placement/reasons.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { keyOf, readPodSubject, type Subject } from '../../src/placement/subject.ts';
import { daemonSetSubject, failed, known, policyOf, settings, toleration } from './objects.ts';

/** The fields of a pod and of its surroundings in which one case differs from another. */
type Given = {
  readonly spec?: JsonObject;
  readonly metadata?: JsonObject;
  readonly namespace?: JsonObject;
  readonly settings?: Partial<Settings>;
  /** A DaemonSet with this template. */
  readonly daemonSet?: JsonObject;
};

const ANSWERS: Readonly<Record<string, ImageAnswer>> = {
  both: known('linux/amd64,linux/arm64,windows/amd64'),
  amd: known('linux/amd64'),
  arm: known('linux/arm64'),
  old: known('linux/386'),
  wasm: known('wasi/wasm'),
  lost: failed(10),
};

const images = (...names: readonly string[]): JsonObject => ({ containers: names.map((image) => ({ image })) });
const OURS = toleration('supported-arch=amd64:NoSchedule');
const OWNED = {
  ownerReferences: [{ kind: 'DaemonSet', apiVersion: 'apps/v1', name: 'd', uid: 'd', controller: true }],
};

function read({ spec, metadata, namespace, settings: own, daemonSet }: Given): Subject {
  const all = settings({ mode: 'both', ...own });
  if (daemonSet !== undefined) {
    const template = { spec: images('amd'), ...daemonSet };
    return daemonSetSubject(readDaemonSet({ metadata, spec: { template } }), all);
  }
  const pod = readPod({ metadata: { uid: 'u1', ...metadata }, spec: { ...images('both'), ...spec } });
  const home = readNamespace({ metadata: { name: 'shop', ...namespace } });
  return readPodSubject(pod, home, settingsFor(all, { namespace: home, labels: pod.labels }));
}

/** Returns the result of every pure rule about a subject. `recorded`: a record of the template. */
function behaviour(subject: Subject, recorded: string) {
  const namesOf = (image: string) => [`docker.io/library/${image}`];
  const asked: unknown[] = [];
  const decision = decide(subject, {
    clusterArchitectures: ['amd64', 'arm64'],
    namesOf,
    answerOf(image) {
      asked.push([image, accessFor(image, subject.namespace, subject.pullSecrets)]);
      return ANSWERS[image.image] ?? failed(0);
    },
    waitedMs: 0,
  });
  return {
    skipped: subject.skipped,
    asked,
    decision,
    placing: decision.kind === 'place' ? placingFor(decision, subject) : undefined,
    standing: standingArchitectures(subject, { tolerations: true, architectures: ['s390x'] }, namesOf),
    record: standingTemplate(subject, recorded, namesOf),
    contradiction: contradictionOf(decision, subject.asked, subject.settings),
  };
}

/** Two cases that differ in one thing, which changes what archaware does. */
type Row = readonly [one: Given, other: Given];

/** A row for each field: a field without one does not compile. */
const ROWS: Readonly<Record<Exclude<keyof Subject, 'settings'>, Row>> = {
  namespace: [{}, { namespace: { name: 'other' } }],
  images: [{}, { spec: images('arm') }],
  os: [{}, { spec: { os: { name: 'windows' } } }],
  hasRuntimeClass: [{ spec: images('wasm') }, { spec: { ...images('wasm'), runtimeClassName: 'wasmtime' } }],
  statement: [{}, { metadata: { annotations: { 'archaware.dev/architectures': 'arm64' } } }],
  pullSecrets: [{}, { spec: { imagePullSecrets: [{ name: 'login' }] } }],
  isSystem: [{ spec: images('lost') }, { spec: { ...images('lost'), priorityClassName: 'system-node-critical' } }],
  skipped: [{}, { metadata: { labels: { 'archaware.dev/ignore': 'true' } } }],
  asked: [{ spec: images('arm') }, { spec: { ...images('arm'), nodeSelector: { 'kubernetes.io/arch': 'amd64' } } }],
  labels: [{}, { metadata: { labels: { 'archaware.dev/preferred': 'arm64' } } }],
  preferred: [{}, { namespace: { annotations: { 'archaware.dev/preferred': 'arm64=75' } } }],
  tolerated: [{}, { spec: { tolerations: [OURS] } }],
  isGated: [
    { spec: { tolerations: [OURS] } },
    { spec: { tolerations: [OURS], schedulingGates: [{ name: 'archaware.dev/architecture' }] } },
  ],
  digest: [{ daemonSet: {} }, { daemonSet: { metadata: { annotations: { restarted: 'today' } } } }],
};

/** Why a setting is in no key. */
type Reason = string;
type SettingName = Exclude<keyof Settings, 'taints'> | `taints.${keyof Settings['taints']}`;
const taints = (more: Partial<Settings['taints']>): Partial<Settings> => ({
  taints: { ...settings().taints, ...more },
});
const under = (given: Given, one: Partial<Settings>, other: Partial<Settings>): Row => [
  { ...given, settings: one },
  { ...given, settings: other },
];
const POLICY = policyOf('p', { mode: 'both', schedulable: ['arm64'] });

/** A row for each setting, or why it is in no key: a setting without one does not compile. */
const SETTINGS: Readonly<Record<SettingName, Row | Reason>> = {
  mode: under({}, { mode: 'taints' }, { mode: 'affinity' }),
  'taints.key': under({}, {}, taints({ key: 'arch' })),
  'taints.effect': under({}, {}, taints({ effect: 'PreferNoSchedule' })),
  'taints.manage': 'decides about nodes only',
  'taints.nodeSelector': 'decides about nodes only',
  schedulable: under({}, {}, { schedulable: ['arm64'] }),
  compatible: under({ spec: images('old') }, {}, { compatible: {} }),
  overrides: under({}, {}, { overrides: [{ pattern: 'both', architectures: ['arm64'] }] }),
  noCommonArchitecture: under({ spec: images('amd', 'arm') }, {}, { noCommonArchitecture: 'release' }),
  unresolvable: under({ spec: images('lost') }, {}, { unresolvable: 'wait' }),
  fallback: under(
    { spec: images('lost') },
    { unresolvable: 'fallback', fallbackAfterMs: 0, fallback: ['amd64'] },
    { unresolvable: 'fallback', fallbackAfterMs: 0, fallback: ['arm64'] },
  ),
  fallbackAfterMs: under({ spec: images('lost') }, {}, { fallbackAfterMs: 5_000 }),
  preferred: under({}, {}, { preferred: { arm64: 75 } }),
  // A label that is read anyway, so that nothing but the setting differs.
  matchNodeLabels: under(
    { metadata: { labels: { 'archaware.dev/preferred': 'arm64' } } },
    {},
    { matchNodeLabels: ['archaware.dev/preferred'] },
  ),
  systemNamespaces: under({ spec: images('lost') }, {}, { systemNamespaces: ['shop'] }),
  excludeNamespaces: under({}, {}, { excludeNamespaces: ['shop'] }),
  namespaceSelector: under({}, {}, { namespaceSelector: [{ key: 'team', operator: 'exists', values: [] }] }),
  daemonSets: under({ metadata: OWNED }, {}, { daemonSets: 'ignore' }),
  policies: under({}, {}, { policies: [POLICY] }),
  policy: 'is the name of a policy, which Events mention',
  refused: 'decides at admission what is left out of a patch (`withdrawn`)',
  onWrongNode: 'decides about pods that have a node, after their placement',
};

function expectToDecide([one, other]: Row): readonly [one: Subject, other: Subject] {
  const subjects = [read(one), read(other)] as const;
  const recorded = JSON.stringify({ ...recordBasis(subjects[0]), tolerations: [OURS] });
  const [before, after] = subjects.map((subject) => behaviour(subject, recorded));
  expect(keyOf(subjects[0]), 'the key').not.to.equal(keyOf(subjects[1]));
  expect(isSame(...subjects), 'the comparison').to.equal(false);
  expect(before, 'what archaware does').not.to.deep.equal(after);
  return subjects;
}

function expectSame(one: Subject, other: Subject): void {
  expect(keyOf(one)).to.equal(keyOf(other));
  expect(isSame(one, other)).to.equal(true);
}

describe('each field of a subject is in its key, and decides', () => {
  for (const [field, row] of Object.entries(ROWS)) {
    it(field, () => {
      const [one, other] = expectToDecide(row).map(({ [field as keyof Subject]: _, ...others }) => others);
      expect(one, 'nothing else differs').to.deep.equal(other);
    });
  }

  it('has a row above', () => expect(Object.keys(read({}))).to.have.members([...Object.keys(ROWS), 'settings']));
});

describe('each setting that decides is in the key', () => {
  for (const [name, row] of Object.entries(SETTINGS)) {
    if (typeof row === 'string') continue;
    it(name, () => void expectToDecide(row));
  }

  it('and has a row above, as the others have a reason', () => {
    const all = Object.keys(read({}).settings).filter((name) => name !== 'taints');
    expect(Object.keys(SETTINGS)).to.include.members(all);
    const others = settings({ mode: 'both', ...taints({ manage: false }), refused: 'keep', onWrongNode: 'evict' });
    expectSame(read({ settings: { ...others, policy: 'p' } }), read({}));
  });
});

describe('the key of a subject', () => {
  it('is the same for the pods of a template', () => {
    const own = settings();
    const subjectOf = (uid: string) => {
      const pod = readPod({ metadata: { uid, name: `web-${uid}`, resourceVersion: uid }, spec: images('both') });
      return readPodSubject(pod, readNamespace({ metadata: { name: 'shop' } }), own);
    };
    expectSame(subjectOf('1'), subjectOf('2'));
  });

  it('is the same again under settings that were read again', () => {
    expectSame(read({ settings: { schedulable: ['arm64'] } }), read({ settings: { schedulable: ['arm64'] } }));
  });

  it('does not change with the phase of a pod, its node or the tolerations of others', () => {
    const tolerations = [{ key: 'gpu', operator: 'Exists' }];
    expectSame(read({ spec: { nodeName: 'n1', tolerations } }), read({}));
  });
});

describe('what a record of a template is compared by', () => {
  const recordOf = (own: Partial<Settings>) => recordBasis(read({ daemonSet: {}, settings: own })).subject;
  const same: readonly Partial<Settings>[] = [
    { mode: 'taints' },
    taints({ key: 'arch' }),
    { preferred: { arm64: 75 } },
    { matchNodeLabels: ['pool'] },
    { unresolvable: 'wait' },
    { fallback: ['arm64'] },
    { fallbackAfterMs: 5_000 },
    { systemNamespaces: ['shop'] },
  ];
  for (const own of same)
    it(`is not ${Object.keys(own)}, which says nothing about images`, () =>
      expect(recordOf(own)).to.equal(recordOf({})));

  const others: readonly Partial<Settings>[] = [
    { schedulable: ['arm64'] },
    { compatible: {} },
    { overrides: [{ pattern: 'x', architectures: ['arm64'] }] },
    { noCommonArchitecture: 'release' },
  ];
  for (const own of others) it(`is ${Object.keys(own)}`, () => expect(recordOf(own)).not.to.equal(recordOf({})));
});
