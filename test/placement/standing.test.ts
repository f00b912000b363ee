import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { type DecisionBasis, type Placement, standing } from '../../src/placement/decide.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { GUESSED } from '../../src/placement/objects/template-record.ts';
import {
  overPlaced,
  overTemplate,
  recordBasis,
  standingArchitectures,
  standingTemplate,
} from '../../src/placement/placing.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { readPodSubject } from '../../src/placement/subject.ts';
import { requires, term } from './affinities.ts';
import { daemonSetSubject, settings, toleration } from './objects.ts';

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
const RELEASED = wrote('archaware-controller', AFFINITY, 1);
const ASKS_ARM = requires(term('arch In arm64'));

describe('what archaware wrote to a pod', () => {
  const ours = { tolerations: [AMD] };
  const both = { tolerations: [AMD, ARM] };
  const required = [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }];
  const rows: readonly [
    what: string,
    managed: JsonObject[],
    spec: JsonObject,
    mode: 'taints' | 'both' | 'affinity' | 'observe',
    expected?: string,
    record?: JsonObject,
  ][] = [
    ['nothing was written', [author], {}, 'taints'],
    ['tolerations by the loop', BY_US, both, 'taints', 'amd64,arm64'],
    ['tolerations that were left behind, where it only observes', BY_US, both, 'observe'],
    ['tolerations of the same form by the author', [author, wrote('kubectl', TOLERATIONS)], ours, 'taints'],
    ['tolerations at admission', [author], ours, 'both', 'amd64', ours],
    ['those of another key', BY_US, { tolerations: [toleration('old=amd64:NoSchedule')] }, 'taints'],
    ['the gate is still there', BY_US, { ...ours, schedulingGates: [GATE] }, 'both'],
    ['an image was changed in a later second', [US, wrote('kubectl-set', IMAGE, 2)], ours, 'taints'],
    ['something else was', [US, wrote('kubectl-edit', { 'f:activeDeadlineSeconds': {} }, 2)], ours, 'taints', 'amd64'],
    ['the status was written later', [...BY_US, wrote('kubelet', {}, 3, 'status')], ours, 'taints', 'amd64'],
    ['node affinity at the release of the gate', [author, RELEASED], { affinity: ASKS_ARM }, 'affinity', 'arm64'],
    ['node affinity at admission', [author], { affinity: ASKS_ARM }, 'affinity', 'arm64', { required }],
    ['node affinity of the author', [wrote('kubectl', AFFINITY)], { affinity: ASKS_ARM }, 'affinity'],
  ];
  for (const [what, managedFields, spec, mode, expected, record] of rows) {
    it(`${what}: ${expected ?? 'it is not valid any more'}`, () => {
      const annotations = record === undefined ? {} : { 'archaware.dev/managed': JSON.stringify(record) };
      const pod = readPod({
        metadata: { creationTimestamp: '2026-01-01T00:00:00Z', managedFields, annotations },
        spec: { containers: [{ name: 'app', image: 'a' }], ...spec },
      });
      const subject = readPodSubject(pod, { name: 'shop', labels: {}, preferred: undefined }, settings({ mode }));
      expect(standingArchitectures(subject, pod.written, (image) => [image])?.join()).to.equal(expected);
    });
  }
});

/** An image of a volume is `volume v`. */
const daemonSet = (images: readonly string[], recorded: string | undefined, metadata: JsonObject = {}) => {
  const isOfVolume = (image: string) => image.startsWith('volume ');
  const containers = images.filter((image) => !isOfVolume(image)).map((image) => ({ image }));
  const volumes = images.filter(isOfVolume).map((text) => ({ name: 'data', image: { reference: text.slice(7) } }));
  return readDaemonSet({
    metadata: recorded === undefined ? {} : { annotations: { 'archaware.dev/tolerations': recorded } },
    spec: { template: { metadata, spec: { containers, volumes } } },
  });
};
const record = (images: readonly string[]) =>
  JSON.stringify({ ...recordBasis(daemonSetSubject(daemonSet(images, undefined), settings())), tolerations: [AMD] });
const RESTARTED = { annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } };

describe('what archaware wrote to a template', () => {
  const never = { imagePullPolicy: 'Never' };
  const stating = (text: string) => ({ annotations: { 'archaware.dev/architectures': text } });
  const ALONE = JSON.stringify([AMD]);
  const OVERRIDDEN = { overrides: [{ pattern: 'a', architectures: ['amd64'] }] };
  const rows: readonly [
    what: string,
    images: readonly string[],
    recorded: string | undefined,
    isValid: boolean,
    given?: Parameters<typeof settings>[0],
    metadata?: JsonObject,
  ][] = [
    ['no record', ['a'], undefined, false],
    ['a record of this template', ['b', 'a'], record(['b', 'a']), true],
    ['the same images in another order, which its author changed', ['b', 'a'], record(['a', 'b']), false],
    ['a template that was restarted since', ['a'], record(['a']), false, {}, RESTARTED],
    ['a record under other settings', ['a'], record(['a']), false, { schedulable: ['arm64'] }],
    ['a record without images', ['a'], ALONE, true],
    ['a record of a guess', ['a'], JSON.stringify({ ...GUESSED, tolerations: [AMD] }), false],
    ['a record under another key', ['a'], record(['a']), true, { taints: { ...settings().taints, key: 'other' } }],
    ['a statement that cannot be read, and counts as absent', ['a'], ALONE, true, {}, stating('x64')],
    ['a template that states its architectures', ['a'], record(['a']), false, {}, stating('all')],
    ['images that an override answers', ['a'], record(['a']), false, OVERRIDDEN],
    ['the same beside a record without images', ['a'], ALONE, false, {}, stating('all')],
    ['a mode that only observes', ['a'], record(['a']), false, { mode: 'observe' }],
    ['what cannot be read', ['a'], '{"images":', false],
    // An earlier version did not read volumes.
    ['an image volume that the record does not have', ['a', 'volume v'], record(['a']), false],
    ['one that it has', ['a', 'volume v'], record(['a', 'volume v']), true],
    ["one whose image was a container's", ['a', 'volume v'], record(['a', 'v']), false],
  ];
  for (const [what, images, recorded, isValid, given = {}, metadata] of rows) {
    it(`${what}: ${isValid ? 'amd64' : 'it is not valid any more'}`, () => {
      const subject = daemonSetSubject(daemonSet(images, recorded, metadata), settings(given));
      expect(standingTemplate(subject, recorded, (image) => [image])).to.deep.equal(isValid ? ['amd64'] : undefined);
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
  const ALL = ['amd64', 'arm64'];
  const GUESS = { ...GUESSED, tolerations: [AMD] };
  const AMD_ONLY = settings({ schedulable: ['amd64'] });
  const rows: readonly [what: string, decision: Placement, recorded: unknown, expected: string, given?: Settings][] = [
    ['known images', of('images', ['arm64']), [AMD], 'arm64 (images)'],
    ['a guess where nothing was written', of('open', ALL, true), undefined, 'amd64,arm64 (open)'],
    ['a guess where something was: that stands', of('open', ALL, true), [AMD], 'amd64 (written)'],
    ['a guess where there is only an earlier one: it grows', of('open', ALL, true), GUESS, 'amd64,arm64 (open)'],
    ['a fallback where something was: that stands', of('fallback', ['arm64']), [AMD], 'amd64 (written)'],
    ['an architecture joined', of('cluster', ALL, true), [AMD], 'amd64,arm64 (cluster)'],
    ['the last node of one has gone: it stays', of('cluster', ['amd64'], true), [AMD, ARM], 'amd64,arm64 (cluster)'],
    ['one is no longer schedulable', of('cluster', ['amd64'], true), [AMD, ARM], 'amd64 (cluster)', AMD_ONLY],
  ];
  for (const [what, decision, recorded, expected, given = settings()] of rows) {
    it(`${what}: ${expected}`, () => {
      const { basis, architectures } = overTemplate(decision, JSON.stringify(recorded), given);
      expect(`${architectures} (${basis})`).to.equal(expected);
    });
  }
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
    const expected = { kind: 'place', basis: 'written', architectures: ['arm64'], unknown: ['a'] };
    for (const decision of [guess, wait]) expect(overPlaced(decision, unbound, ['arm64'])).to.deep.include(expected);
  });
  it('is not confused with a decision on known images, which every pod gets', () => {
    const known = { ...guess, basis: 'images', unknown: [] } as const;
    expect(overPlaced(known, bound, ['amd64'])).to.equal(known);
  });
});
