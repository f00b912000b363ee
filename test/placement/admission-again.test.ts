import { expect } from 'chai';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../src/kit/json.ts';
import { put } from '../../src/placement/admission/record.ts';
import { REQUIRED } from '../../src/placement/patch/affinity.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { type Circumstances, GATE, injected, MANAGED, placement, pod, review } from './admissions.ts';
import { expression, requires, term } from './affinities.ts';
import { known, pending, toleration } from './objects.ts';

const answers = {
  a: known('linux/amd64,linux/arm64'),
  arm: known('linux/arm64'),
  s390x: known('linux/s390x'),
  mixed: known('linux/amd64,linux/arm64,windows/amd64'),
  both: known('linux/amd64,linux/arm64'),
  cold: pending,
};
const ARM = toleration('supported-arch=arm64:NoSchedule');
const X = { key: 'x', operator: 'Exists' };
const NOTED = 'notes archaware.dev/managed';
const BOTH = 'arch In amd64,arm64';

function by(mode: Settings['mode'], more: Partial<Settings> = {}): Circumstances {
  return { answers, settings: { mode, preferred: { arm64: 75 }, ...more } };
}

/** Changes the list at a path below `spec`; undefined removes it. */
function changed(
  object: JsonObject,
  path: string[],
  change: (list: readonly unknown[]) => readonly unknown[] | undefined,
) {
  const whole = ['spec', ...path];
  const parent = whole.slice(0, -1).reduce(objectAt, object);
  return put(object, whole, change(listAt(parent, whole.at(-1) ?? '') ?? []));
}

const TERMS = ['affinity', 'nodeAffinity', REQUIRED, 'nodeSelectorTerms'];
const tolerating = (toleration: JsonObject) => (object: JsonObject) =>
  changed(object, ['tolerations'], (list) => [...list, toleration]);
/** Another webhook that changes the expressions of every required term. */
const requiring = (change: (list: readonly JsonObject[]) => readonly JsonObject[]) => (object: JsonObject) =>
  changed(object, TERMS, (terms) =>
    terms.map((entry) =>
      isObject(entry) ? { ...entry, matchExpressions: change(listAt(entry, 'matchExpressions') ?? []) } : entry,
    ),
  );
const annotated = (object: JsonObject) => put(object, ['metadata', 'annotations', 'other'], 'x');
const reversed =
  (...path: string[]) =>
  (object: JsonObject) =>
    changed(object, path, (list) => [...list].reverse());
const noteOf = (object: JsonObject) => stringAt(objectAt(objectAt(object, 'metadata'), 'annotations'), MANAGED) ?? '';

type Change = (object: JsonObject) => JsonObject;
const without =
  (...path: string[]): Change =>
  (object) =>
    put(object, path, undefined);
const TAINTS = by('taints');
const BY_BOTH = by('both');
/** Without a preference. */
const PLAIN = by('affinity', { preferred: {} });
type Row = readonly [given: string, first: JsonObject, between: Change, circumstances: Circumstances, expected: string];

/** `expected`: the result of a review, and the pod after it. One more changes nothing. */
function settles(given: string, object: () => JsonObject, circumstances: Circumstances, expected: string): void {
  it(`${given}: ${expected}`, () => {
    const { kind, after } = review(object(), circumstances);
    expect(`${kind}: ${placement(after)}`).to.equal(expected);
    expect(review(after, circumstances).kind, 'one more review').to.equal('unchanged');
  });
}

/** `expected`: of the second review. */
function check(rows: readonly Row[]): void {
  for (const [given, first, between, circumstances, expected] of rows)
    settles(given, () => between(review(first, circumstances).after), circumstances, expected);
}

const sidecar =
  (image: string): Change =>
  (object) =>
    injected(object, image);
const both =
  (...changes: Change[]): Change =>
  (object) =>
    changes.reduce((so, change) => change(so), object);

describe('admission that is called again with its first answer in the pod', () => {
  const tolerates = 'tolerates amd64,arm64';
  const full = `${tolerates}; affinity ${BOTH}; prefers arch In arm64 (75); ${NOTED}`;
  const reverse = (list: readonly JsonObject[]) => [...list].reverse();
  const chosen: Change = (object) => put(object, ['spec', 'nodeSelector'], { 'kubernetes.io/arch': 'arm64' });
  const wishes = full.replace(`; ${NOTED}`, '');
  const zoned = pod({ affinity: requires(term('zone In a')), tolerations: [X] });
  check([
    ['with an image of the same set', pod(), sidecar('both'), BY_BOTH, `unchanged: ${full}`],
    ['another webhook added a toleration', pod(), tolerating(X), TAINTS, `unchanged: ${tolerates},x; ${NOTED}`],
    ['another webhook added an annotation', pod(), annotated, TAINTS, `unchanged: ${tolerates}; ${NOTED},other`],
    ['reordered', zoned, requiring(reverse), PLAIN, `unchanged: tolerates x; affinity ${BOTH} & zone In a; ${NOTED}`],
    ['another took our tolerations', pod(), without('spec', 'tolerations'), TAINTS, `patched: ${tolerates}; ${NOTED}`],
    // The rest is taken for wishes.
    ['another took our annotation', pod(), without('metadata', 'annotations'), BY_BOTH, `unchanged: ${wishes}`],
    ['another chose the architecture', pod(), chosen, PLAIN, `unchanged: affinity ${BOTH}; ${NOTED}`],
  ]);
});

describe('admission after a sidecar was injected', () => {
  const zoned = pod({
    affinity: requires(term('zone In a'), term('arch In s390x'), term('zone In b')),
    tolerations: [X],
  });
  const first = 'first Exists & arch In arm64';
  const before = requires(term('first Exists'));
  const prepended: Change = (object) =>
    changed(object, TERMS, (terms) => [
      ...(listAt(['nodeAffinity', REQUIRED].reduce(objectAt, before), 'nodeSelectorTerms') ?? []),
      ...terms,
    ]);
  const beside = both(prepended, sidecar('arm'));
  check([
    ['with a toleration', pod(), both(tolerating(X), sidecar('arm')), TAINTS, `patched: tolerates arm64,x; ${NOTED}`],
    [
      'with expressions of others behind ours',
      zoned,
      both(
        requiring((list) => [...list, expression('gpu Exists')]),
        sidecar('arm'),
      ),
      PLAIN,
      `patched: tolerates x; affinity zone In a & ${BOTH} & gpu Exists & arch In arm64 | arch In s390x & gpu Exists` +
        ` | zone In b & ${BOTH} & gpu Exists & arch In arm64; ${NOTED}`,
    ],
    [
      'with terms in another order',
      zoned,
      both(reversed(...TERMS), sidecar('arm')),
      PLAIN,
      `patched: tolerates x; affinity zone In b & ${BOTH} & arch In arm64 | arch In s390x | zone In a & ${BOTH} & arch In arm64; ${NOTED}`,
    ],
    ['beside ours', pod(), beside, PLAIN, `patched: affinity ${first} | ${BOTH} & arch In arm64; ${NOTED}`],
  ]);

  it("leaves a user's own tolerations that look like archaware's, and every requirement", () => {
    const own = pod({
      tolerations: [ARM, X],
      affinity: requires(term('arch In amd64,arm64'), term('zone In a')),
      nodeSelector: { zone: 'a' },
    });
    const circumstances = by('both', { preferred: {} });
    const { after } = review(own, circumstances);
    const narrowed = review(injected(after, 's390x'), { ...circumstances, mayGate: false });
    expect(placement(narrowed.after)).to.equal(`tolerates arm64,x; affinity ${BOTH} | zone In a & ${BOTH}; ${NOTED}`);
  });
});

describe('admission that gated a pod', () => {
  const cold = pod({}, {}, ['cold']);
  const quota: Change = (object) => changed(object, ['schedulingGates'], (list) => [...list, { name: 'q' }]);
  check([
    ['is called again after another gate', cold, quota, BY_BOTH, `unchanged: gates ${GATE},q`],
    ['is called again without its gate', cold, without('spec', 'schedulingGates'), BY_BOTH, `gated: gates ${GATE}`],
  ]);

  const IGNORE = { 'archaware.dev/ignore': 'true' };
  const gated = review(cold, BY_BOTH).after;
  const known = { ...PLAIN, answers: { ...answers, cold: answers.arm } };
  const rows: [given: string, object: JsonObject, circumstances: Circumstances, expected: string][] = [
    ['and knows its images now', gated, known, `patched: affinity arch In arm64; ${NOTED}`],
    ["and leaves others' gates", quota(gated), known, `patched: affinity arch In arm64; gates q; ${NOTED}`],
    ['and nobody is there any more to release it', gated, { ...BY_BOTH, mayGate: false }, 'patched: '],
    // The API server refuses one that is gated and bound.
    ['and it is bound meanwhile', put(gated, ['spec', 'nodeName'], 'n1'), BY_BOTH, 'patched: '],
    ['and it is to be ignored meanwhile', put(gated, ['metadata', 'labels'], IGNORE), BY_BOTH, 'patched: '],
  ];
  for (const [given, object, circumstances, expected] of rows) settles(given, () => object, circumstances, expected);
});

describe('a record that its author forged', () => {
  // A mutating policy of the cluster added this before, and archaware would have added the same.
  const forced = { affinity: requires(term('arch In amd64')), tolerations: [ARM] };
  const forged = (record: JsonObject, spec: JsonObject = forced, images?: readonly string[]) =>
    pod(spec, { annotations: { [MANAGED]: JSON.stringify(record) } }, images);
  const AMD = 'affinity arch In amd64';
  const more = { required: [{ key: 'kubernetes.io/arch', values: ['amd64', 's390x'] }] };
  const claim: JsonObject = { tolerations: [ARM], required: [{ key: 'kubernetes.io/arch', values: ['amd64'] }] };
  const rows: [given: string, object: JsonObject, mode: Settings['mode'], expected: string][] = [
    ['claims what a policy requires', forged(claim), 'affinity', `patched: affinity arch In amd64; ${NOTED}`],
    ['claims one too many', forged(claim, forced, ['s390x']), 'taints', `patched: tolerates s390x; ${AMD}; ${NOTED}`],
    ['claims more than is there', forged(more), 'affinity', `patched: tolerates arm64; ${AMD}`],
    ['claims what is absent', forged(claim, {}), 'both', `patched: tolerates amd64,arm64; affinity ${BOTH}; ${NOTED}`],
  ];
  for (const [given, object, mode, expected] of rows)
    settles(given, () => object, by(mode, { preferred: {} }), expected);

  it('lists afterwards only what is there', () => {
    const { after } = review(
      forged({ ...claim, tolerations: [ARM, toleration('gpu=yes:NoSchedule')] }, {}),
      by('both', { preferred: {} }),
    );
    expect(JSON.parse(noteOf(after))).to.deep.equal({
      tolerations: [toleration('supported-arch=amd64:NoSchedule'), ARM],
      required: [{ key: 'kubernetes.io/arch', values: ['amd64', 'arm64'] }],
    });
  });
});

describe('an annotation that archaware did not write', () => {
  const circumstances = by('both', { preferred: {} });
  const wishes = {
    tolerations: [{ key: 'gpu', operator: 'Equal', value: 'yes', effect: 'NoSchedule' }],
    affinity: requires(term('tenant In a')),
  };
  const forged = (record: unknown) =>
    pod(wishes, { annotations: { [MANAGED]: typeof record === 'string' ? record : JSON.stringify(record) } });
  /** The wishes of the pod stay. */
  const expected = `patched: tolerates gpu=yes,amd64,arm64; affinity tenant In a & ${BOTH}; ${NOTED}`;
  const ARCH = { key: 'kubernetes.io/arch', values: ['x'] };
  const rows: [given: string, record: unknown][] = [
    ['is no JSON', '{'],
    ['has fields of other types', { tolerations: 1, required: { a: 1 }, preferred: 'x' }],
    ['has entries of other types', { tolerations: [1, null, {}], required: [[], { key: 1 }], preferred: [{}] }],
    ['claims tolerations under other keys', { tolerations: wishes.tolerations }],
    ['claims requirements of other labels', { required: [{ term: 0, key: 'tenant', values: ['a'] }] }],
    ['claims terms that are not there', { required: [-1, 0.5, 9, 1e300].map((term) => ({ ...ARCH, term })) }],
    ['claims tolerations that are not there', { tolerations: [ARM] }],
  ];
  for (const [given, record] of rows) settles(given, () => forged(record), circumstances, expected);

  const large = pod({}, { annotations: { x: 'x'.repeat(256 * 1024 - 100) } });
  const unnoted = `patched: tolerates amd64,arm64; affinity ${BOTH}; notes x`;
  settles('would be too large for the API server with the others', () => large, circumstances, unnoted);

  it('may be very long, like the pod', () => {
    const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
    const record = { tolerations: many(2500, ARM), required: many(2500, { key: 'kubernetes.io/arch', values: ['x'] }) };
    const expressions = many(20_000, { key: 'kubernetes.io/arch', operator: 'In' });
    const huge = pod(
      { tolerations: many(200_000, {}), affinity: requires({ matchExpressions: expressions }) },
      { annotations: { [MANAGED]: JSON.stringify(record) } },
    );
    expect(review(huge, circumstances).kind).to.equal('unchanged');
  });
});
