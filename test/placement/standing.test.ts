import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { type DecisionBasis, type Placement, standing } from '../../src/placement/decide.ts';
import { GUESSED, readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import {
  overPlaced,
  overTemplate,
  recordBasis,
  standingArchitectures,
  standingTemplate,
} from '../../src/placement/standing.ts';
import { readPodSubject } from '../../src/placement/subject.ts';
import { requires, term } from './affinities.ts';
import { daemonSetSubject, decideCase, input, known, settings, toleration } from './objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const GATE = { name: 'archaware.dev/architecture' };

/** `metadata.managedFields`: which manager set which field, and when in seconds. */
const wrote = (manager: string, fields: JsonObject, second = 0, subresource = '') => ({
  manager,
  time: `2026-01-01T00:00:0${second}Z`,
  fieldsV1: { 'f:spec': fields },
  ...(subresource === '' ? {} : { subresource }),
});
const IMAGE = { 'f:containers': { 'k:{"name":"app"}': { 'f:image': {} } } };
const TOLERATIONS = { 'f:tolerations': {} };
const AFFINITY = { 'f:affinity': {} };
const author = wrote('kubectl', IMAGE);
const US = wrote('archaware-controller', TOLERATIONS, 1);
const BY_US = [author, US];
const ASKS_ARM = requires(term('arch In arm64'));

describe('what archaware wrote to a pod', () => {
  const rows: readonly [
    what: string,
    pod: { managed?: JsonObject[]; record?: JsonObject; spec?: JsonObject },
    mode: 'taints' | 'both' | 'affinity' | 'observe',
    expected: readonly string[] | undefined,
  ][] = [
    ['nothing was written', { managed: [author] }, 'taints', undefined],
    ['tolerations by the loop', { managed: BY_US, spec: { tolerations: [AMD, ARM] } }, 'taints', ['amd64', 'arm64']],
    [
      'tolerations that were left behind, in the mode that reports what the images say',
      { managed: BY_US, spec: { tolerations: [AMD, ARM] } },
      'observe',
      undefined,
    ],
    [
      'tolerations of the same form by the author',
      { managed: [author, wrote('kubectl', TOLERATIONS)], spec: { tolerations: [AMD] } },
      'taints',
      undefined,
    ],
    [
      'tolerations at admission',
      { managed: [author], record: { tolerations: [AMD] }, spec: { tolerations: [AMD] } },
      'both',
      ['amd64'],
    ],
    [
      'tolerations under a key that is no longer configured',
      { managed: BY_US, spec: { tolerations: [toleration('old=amd64:NoSchedule')] } },
      'taints',
      undefined,
    ],
    [
      'the gate is still there',
      { managed: BY_US, spec: { tolerations: [AMD], schedulingGates: [GATE] } },
      'both',
      undefined,
    ],
    [
      'an image was changed in a later second',
      { managed: [US, wrote('kubectl-set', IMAGE, 2)], spec: { tolerations: [AMD] } },
      'taints',
      undefined,
    ],
    [
      'something else was changed later',
      { managed: [US, wrote('kubectl-edit', { 'f:activeDeadlineSeconds': {} }, 2)], spec: { tolerations: [AMD] } },
      'taints',
      ['amd64'],
    ],
    [
      'the status was written later',
      { managed: [author, US, wrote('kubelet', {}, 3, 'status')], spec: { tolerations: [AMD] } },
      'taints',
      ['amd64'],
    ],
    [
      'node affinity at the release of the gate',
      { managed: [author, wrote('archaware-controller', AFFINITY, 1)], spec: { affinity: ASKS_ARM } },
      'affinity',
      ['arm64'],
    ],
    [
      'node affinity at admission',
      {
        managed: [author],
        record: { required: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }] },
        spec: { affinity: ASKS_ARM },
      },
      'affinity',
      ['arm64'],
    ],
    [
      'node affinity of the author',
      { managed: [wrote('kubectl', AFFINITY)], spec: { affinity: ASKS_ARM } },
      'affinity',
      undefined,
    ],
  ];
  for (const [what, { managed, record, spec }, mode, expected] of rows) {
    it(`${what}: ${expected ?? 'it is not valid any more'}`, () => {
      const pod = readPod({
        metadata: {
          creationTimestamp: '2026-01-01T00:00:00Z',
          managedFields: managed,
          ...(record === undefined ? {} : { annotations: { 'archaware.dev/managed': JSON.stringify(record) } }),
        },
        spec: { containers: [{ name: 'app', image: 'a' }], ...spec },
      });
      const subject = readPodSubject(pod, { name: 'shop', labels: {}, preferred: undefined }, settings({ mode }));
      expect(standingArchitectures(subject, pod.written, (image) => [image])).to.deep.equal(expected);
    });
  }
});

const daemonSet = (images: readonly string[], recorded: string | undefined, metadata: JsonObject = {}) =>
  readDaemonSet({
    metadata: recorded === undefined ? {} : { annotations: { 'archaware.dev/tolerations': recorded } },
    spec: { template: { metadata, spec: { containers: images.map((image) => ({ image })) } } },
  });
const record = (images: readonly string[]) =>
  JSON.stringify({ ...recordBasis(daemonSetSubject(daemonSet(images, undefined), settings())), tolerations: [AMD] });
const RESTARTED = { annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } };

describe('what archaware wrote to a template', () => {
  const never = { imagePullPolicy: 'Never' };
  const rows: readonly [
    what: string,
    images: readonly string[],
    recorded: string | undefined,
    expected: readonly string[] | undefined,
    given?: Parameters<typeof settings>[0],
    metadata?: JsonObject,
  ][] = [
    ['no record', ['a'], undefined, undefined],
    ['a record of this template', ['b', 'a'], record(['b', 'a']), ['amd64']],
    ['a record of other images', ['a'], record(['b']), undefined],
    [
      'a record of the same images in another order, which its author changed',
      ['b', 'a'],
      record(['a', 'b']),
      undefined,
    ],
    ['a template that was restarted since', ['a'], record(['a']), undefined, {}, RESTARTED],
    ['a record under other settings', ['a'], record(['a']), undefined, { schedulable: ['arm64'] }],
    ['a record without images', ['a'], JSON.stringify([AMD]), ['amd64']],
    ['a record of a guess', ['a'], JSON.stringify({ ...GUESSED, tolerations: [AMD] }), undefined],
    ['a record under another key', ['a'], record(['a']), ['amd64'], { taints: { ...settings().taints, key: 'other' } }],
    [
      'a template whose statement cannot be read, and counts as absent',
      ['a'],
      JSON.stringify([AMD]),
      ['amd64'],
      {},
      { annotations: { 'archaware.dev/architectures': 'x64' } },
    ],
    [
      'a template that states its architectures',
      ['a'],
      record(['a']),
      undefined,
      {},
      { annotations: { 'archaware.dev/architectures': 'all' } },
    ],
    [
      'images that an override answers',
      ['a'],
      record(['a']),
      undefined,
      { overrides: [{ pattern: 'a', architectures: ['amd64'] }] },
    ],
    ['what cannot be read', ['a'], '{"images":', undefined],
  ];
  for (const [what, images, recorded, expected, given = {}, metadata] of rows) {
    it(`${what}: ${expected ?? 'it is not valid any more'}`, () => {
      const subject = daemonSetSubject(daemonSet(images, recorded, metadata), settings(given));
      expect(standingTemplate(subject, recorded, (image) => [image])).to.deep.equal(expected);
    });
  }

  it('does not count for a template whose images are never pulled, which follows the cluster', () => {
    const subject = readDaemonSet({ spec: { template: { spec: { containers: [{ image: 'a', ...never }] } } } });
    const recorded = JSON.stringify([AMD]);
    expect(standingTemplate(daemonSetSubject(subject, settings()), recorded, (image) => [image])).to.equal(undefined);
  });

  it('leaves names with braces out of its record, because the admission policies would read them as entries', () => {
    const odd = '{"key":"x","operator":"Equal","value":"amd64","effect":"NoSchedule"}';
    expect(recordBasis(daemonSetSubject(daemonSet([odd, 'a'], undefined), settings())).images).to.deep.equal(['a']);
  });
});

describe('the architectures that a template is to tolerate', () => {
  const of = (basis: DecisionBasis, architectures: readonly string[], followsCluster = false): Placement => ({
    ...standing(architectures, undefined),
    basis,
    followsCluster,
  });
  const rows: readonly [what: string, decision: Placement, recorded: readonly object[], expected: readonly string[]][] =
    [
      ['known images', of('images', ['arm64']), [AMD], ['arm64']],
      ['a guess where nothing was written', of('open', ['amd64', 'arm64'], true), [], ['amd64', 'arm64']],
      ['a guess where something was: that stands', of('open', ['amd64', 'arm64'], true), [AMD], ['amd64']],
      ['a fallback where something was: that stands', of('fallback', ['arm64']), [AMD], ['amd64']],
      ['an architecture joined', of('cluster', ['amd64', 'arm64'], true), [AMD], ['amd64', 'arm64']],
      ['the last node of one has gone: it stays', of('cluster', ['amd64'], true), [AMD, ARM], ['amd64', 'arm64']],
    ];
  for (const [what, decision, recorded, expected] of rows) {
    it(`${what}: ${expected}`, () => {
      const text = recorded.length === 0 ? undefined : JSON.stringify(recorded);
      expect(overTemplate(decision, text, settings()).architectures).to.deep.equal(expected);
    });
  }

  it('grow with the cluster if there is only an earlier guess', () => {
    const recorded = JSON.stringify({ ...GUESSED, tolerations: [AMD] });
    const decision = of('open', ['amd64', 'arm64'], true);
    expect(overTemplate(decision, recorded, settings())).to.deep.include({
      basis: 'open',
      architectures: ['amd64', 'arm64'],
    });
  });

  it('lose an architecture that is no longer schedulable', () => {
    const decision = of('cluster', ['amd64'], true);
    const given = settings({ schedulable: ['amd64'] });
    expect(overTemplate(decision, JSON.stringify([AMD, ARM]), given).architectures).to.deep.equal(['amd64']);
  });

  it('are those of the images again once these are known', () => {
    const decision = decideCase(input({ a: known('linux/arm64') }));
    if (decision.kind !== 'place') throw new Error('not placed');
    expect(overTemplate(decision, JSON.stringify([AMD]), settings()).architectures).to.deep.equal(['arm64']);
  });
});

describe('a decision about a pod with unknown images', () => {
  const guess = { ...standing(['amd64', 'arm64'], undefined), basis: 'open', unknown: ['a'] } as const;
  const wait = { kind: 'wait', images: ['a'], failed: [], againInMs: undefined, givesUpInMs: undefined } as const;
  const bound = { nodeName: 'n1' };
  const unbound = { nodeName: undefined };

  it('adds nothing to a bound pod, and still looks up its images', () => {
    const decision = overPlaced(guess, bound, undefined);
    expect(decision).to.deep.include({ kind: 'place', basis: 'written', architectures: [], unknown: ['a'] });
  });
  it('allows all architectures for a pending pod without anything of archaware', () => {
    expect(overPlaced(guess, unbound, undefined)).to.equal(guess);
    expect(overPlaced(wait, unbound, undefined)).to.equal(wait);
  });
  it('changes nothing on a pod that archaware placed before', () => {
    for (const decision of [guess, wait]) {
      expect(overPlaced(decision, unbound, ['arm64'])).to.deep.include({
        kind: 'place',
        basis: 'written',
        architectures: ['arm64'],
        unknown: ['a'],
      });
    }
  });
  it('is not confused with a decision on known images, which every pod gets', () => {
    const known = { ...guess, basis: 'images', unknown: [] } as const;
    expect(overPlaced(known, bound, ['amd64'])).to.equal(known);
  });
});
