import { expect } from 'chai';
import { type JsonObject, listAt, objectAt, stringAt } from '../../../src/kit/json.ts';
import { admitDaemonSet, type DaemonSetAdmissionInput } from '../../../src/placement/admission/daemonset.ts';
import { put } from '../../../src/placement/admission/record.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { readRecord } from '../../../src/placement/objects/template-record.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { input, known, pending, settings, toleration } from '../objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const S390X = toleration('supported-arch=s390x:NoSchedule');
const OLD = toleration('old-key=arm64:NoSchedule');
const X = { key: 'x', operator: 'Exists', new: 1 };
const NOTE = 'archaware.dev/tolerations';

const NOTED = { recorded: [AMD, ARM] };
const IGNORED = { labels: { 'archaware.dev/ignore': 'true' } };

type Given = {
  image?: string;
  tolerations?: readonly JsonObject[];
  recorded?: readonly JsonObject[] | string;
  labels?: JsonObject;
  restarted?: boolean;
};

function daemonSet({ image = 'a', tolerations, recorded, labels = {}, restarted }: Given): JsonObject {
  const text = typeof recorded === 'string' ? recorded : JSON.stringify(recorded);
  return {
    metadata: { name: 'd', labels, later: 1, ...(recorded === undefined ? {} : { annotations: { [NOTE]: text } }) },
    spec: {
      later: 2,
      template: {
        metadata: { labels: { app: 'd' }, ...(restarted ? { annotations: { restartedAt: 'now' } } : {}) },
        spec: { later: 3, containers: [{ image }], ...(tolerations === undefined ? {} : { tolerations }) },
      },
    },
  };
}

const answers = {
  a: known('linux/amd64,linux/arm64'),
  arm: known('linux/arm64'),
  none: known('windows/amd64'),
  cold: pending,
};

function admit(
  object: JsonObject,
  more: Partial<Omit<DaemonSetAdmissionInput, 'settings'>> & { settings?: Partial<Settings> } = {},
) {
  const { clusterArchitectures, namesOf, answerOf } = input(answers);
  return admitDaemonSet({
    object,
    before: undefined,
    writer: 'kubectl',
    namespace: { name: 'shop', labels: {} },
    liveTaints: new Set(),
    clusterArchitectures,
    namesOf,
    answerOf,
    ...more,
    settings: settings(more.settings),
  });
}

/** What a DaemonSet tolerates, and what is noted of that: `x,amd64; amd64`. */
function told(object: JsonObject): string {
  const spec = objectAt(objectAt(objectAt(object, 'spec'), 'template'), 'spec');
  const short = (list: readonly JsonObject[] = []) =>
    list.map(({ key, value }) => (key === 'supported-arch' ? value : (key ?? '*'))).join();
  const note = stringAt(objectAt(objectAt(object, 'metadata'), 'annotations'), NOTE);
  const record = readRecord(note);
  const requires = /"values":\[([^\]]*)\]/.exec(JSON.stringify(spec.affinity ?? ''))?.[1]?.replaceAll('"', '');
  if (requires !== undefined) return `requires ${requires}; ${record.requires}`;
  const noted = note === undefined ? '' : `; ${short(record.tolerations)}`;
  return `${short(listAt(spec, 'tolerations')) || 'nothing'}${noted}`;
}

/** The object as the API server sends it again: with fields in the order of their type. */
function encoded(object: JsonObject): JsonObject {
  const path = ['spec', 'template', 'spec'] as const;
  const tolerations = listAt(path.reduce(objectAt, object), 'tolerations');
  const ordered = tolerations?.map(({ key, operator, value, effect, ...more }) =>
    JSON.parse(JSON.stringify({ key, operator, value, effect, ...more })),
  );
  return put(object, [...path, 'tolerations'], ordered);
}

const SAME = 'x,amd64,arm64; amd64,arm64';

type Row = readonly [
  given: string,
  before: Given | undefined,
  after: Given,
  more: Parameters<typeof admit>[1],
  expected: string,
];

/** `expected`: the DaemonSet after admission, or `unchanged`. A second admission must change nothing. */
function check(rows: readonly Row[]): void {
  for (const [given, old, now, more, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const object = daemonSet(now);
      const before = old && daemonSet(old);
      const patch = admit(object, { before, ...more });
      const after = encoded(jsonPatch({ ...object }, JSON.stringify(patch)));
      expect(patch.length === 0 ? 'unchanged' : told(after)).to.equal(expected);
      expect(admit(after, { before, ...more }), 'the second call').to.deep.equal([]);
    });
  }
}

describe('a DaemonSet that is made', () => {
  const release = { settings: { noCommonArchitecture: 'release' } } as const;
  check([
    ['gets its set', undefined, {}, {}, 'amd64,arm64; amd64,arm64'],
    ['is not known yet', undefined, { image: 'cold' }, {}, 'unchanged'],
    ['runs nowhere', undefined, { image: 'none' }, {}, 'unchanged'],
    ['runs nowhere, where that is released', undefined, { image: 'none' }, release, 'amd64,arm64; amd64,arm64'],
    ['is a copy of one', undefined, { image: 'arm', tolerations: [AMD, ARM], ...NOTED }, {}, 'arm64; arm64'],
    ['by affinity', undefined, {}, { settings: { mode: 'affinity' } }, 'requires amd64,arm64; amd64,arm64'],
    ['is ignored', undefined, IGNORED, {}, 'unchanged'],
    ['by us', undefined, {}, { writer: 'archaware-controller' }, 'unchanged'],
    ['by a writer without a name', undefined, {}, { writer: undefined }, 'amd64,arm64; amd64,arm64'],
  ]);
});

describe('a DaemonSet that is updated', () => {
  const ours = { tolerations: [X, AMD, ARM], ...NOTED };
  const past = ['supported-arch=amd64:NoSchedule'];
  const record = JSON.stringify({ images: ['arm'], past, subject: '', tolerations: [ARM] });
  /** The image runs on arm64 alone; an earlier one ran on amd64, too. */
  const narrowed = { image: 'arm', tolerations: [X, ARM], recorded: record };
  const answering = (answer: ImageAnswer) => ({ answerOf: () => answer });
  const restarted = { ...ours, restarted: true };
  const old = { tolerations: [OLD], recorded: [OLD] };
  const live = { liveTaints: new Set(['old-key:NoSchedule']) };
  const undone = { ...narrowed, tolerations: [X, AMD, ARM] };
  check([
    ['in nothing that decides', ours, ours, {}, 'unchanged'],
    ['loses what is ours', ours, { tolerations: [X], ...NOTED }, {}, SAME],
    ['is replaced, annotation included', ours, {}, {}, 'amd64,arm64; amd64,arm64'],
    ['loses the annotation alone', ours, { tolerations: [X, AMD, ARM] }, {}, SAME],
    ['has ours tolerated otherwise', ours, { tolerations: [{ operator: 'Exists' }], ...NOTED }, {}, '*; '],
    ['by us, to take them away', ours, { tolerations: [X] }, { writer: 'archaware-controller' }, 'unchanged'],
    ['to be ignored', ours, { tolerations: [X], ...IGNORED }, {}, 'unchanged'],
    ['that was never given anything, in nothing that decides', {}, { labels: { a: 'b' } }, {}, 'unchanged'],
    ['its image changes to a smaller set', ours, { ...ours, image: 'arm' }, {}, 'x,arm64; arm64'],
    ['it is restarted, and its image has another set', ours, restarted, answering(answers.arm), 'x,arm64; arm64'],
    ['its image changes to one that is not known', ours, { image: 'cold', tolerations: [X] }, {}, SAME],
    ['its image changes to one that runs nowhere', ours, { image: 'none', tolerations: [X] }, {}, SAME],
    ['its image changes under the old taint', old, { ...old, image: 'arm' }, live, 'old-key,arm64; old-key,arm64'],
    ['its image changes when that is gone', old, { ...old, image: 'arm' }, {}, 'arm64; arm64'],
    ['an undo brings back what was ours, for the same images', narrowed, undone, {}, 'x,arm64; arm64'],
    ['the same, with images that are not known yet', narrowed, { ...undone, image: 'cold' }, {}, SAME],
    ['a damaged annotation', { recorded: '{' }, { recorded: '{', labels: { a: 'b' } }, {}, 'nothing'],
  ]);

  it('keeps every field, and changes only the tolerations and the annotation', () => {
    const before = daemonSet({ ...ours });
    const patch = admit(daemonSet({ tolerations: [X], ...NOTED }), { before });
    expect(patch).to.deep.equal([
      { op: 'add', path: '/spec/template/spec/tolerations/-', value: AMD },
      { op: 'add', path: '/spec/template/spec/tolerations/-', value: ARM },
    ]);
  });

  it('is admitted unchanged if its annotations would be too large for the API server', () => {
    const full = put(daemonSet({}), ['metadata', 'annotations'], { x: 'x'.repeat(256 * 1024 - 100) });
    expect(admit(full)).to.deep.equal([]);
  });

  it('is left alone if it is huge, with an annotation that lists many tolerations', () => {
    const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
    const object = daemonSet({ image: 'cold', tolerations: many(50_000, {}), recorded: many(500, S390X) });
    expect(admit(object)).to.deep.equal([]);
  });
});
