import { expect } from 'chai';
import { cleanTemplate } from '../../../src/clean/cleaned.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readRecord } from '../../../src/placement/objects/template-record.ts';
import { carriedTolerations, decideTemplate } from '../../../src/placement/rollout/template.ts';
import { toleration } from '../objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const AUTHORS = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule', new: { field: 1 } };
const NAMED: Readonly<Record<string, JsonObject>> = {
  amd: AMD,
  arm: ARM,
  invented: toleration('supported-arch=zz1:NoSchedule'),
  old: toleration('arch=amd64:NoSchedule'),
  soft: toleration('supported-arch=amd64:PreferNoSchedule'),
  seconds: { ...AMD, tolerationSeconds: 5 },
  gpu: AUTHORS,
  x: { key: 'x', operator: 'Exists' },
  '*': { operator: 'Exists' },
};
const TAINT = { key: 'supported-arch', effect: 'NoSchedule' };
const PAST_ARM = 'supported-arch=arm64:NoSchedule';

const words = (text: string) => text.split(' ').filter((word) => word !== '');
/** Tolerations by their names: `gpu amd`. */
const list = (names: string): JsonObject[] => words(names).map((name) => ({ ...(NAMED[name] ?? expect.fail(name)) }));
const texts = new Map(Object.entries(NAMED).map(([name, each]) => [JSON.stringify(each), name]));
const namesOf = (tolerations: readonly unknown[]) =>
  tolerations.map((each) => texts.get(JSON.stringify(each)) ?? JSON.stringify(each)).join(' ');

const LIST = { 'f:spec': { 'f:template': { 'f:spec': { 'f:tolerations': {} } } } };
/** `metadata.managedFields` after a server-side apply of the list, and after any other write of it. */
const APPLIED = [{ manager: 'helm', operation: 'Apply', fieldsV1: LIST }];
const OURS = { manager: 'archaware-controller', operation: 'Update', fieldsV1: {} };
const UPDATED = [{ manager: 'kubectl', operation: 'Update', fieldsV1: LIST }];

/** With what its record lists, and, after `past`, what it no longer does: `amd past arm`; `{` is a record that cannot be read. */
function daemonSet(present: string | undefined, record?: string, managedFields: readonly JsonObject[] = []) {
  const [recorded = '', past] = record === '{' ? [] : (record?.split('past') ?? []);
  const gone = words(past ?? '').map((each) => (each.includes('=') ? each : `supported-arch=${each}64:NoSchedule`));
  const withPast = { images: [], past: gone, subject: '', tolerations: list(recorded) };
  const annotation = record === '{' ? record : JSON.stringify(past === undefined ? list(recorded) : withPast);
  return readDaemonSet({
    metadata: {
      managedFields,
      ...(record === undefined ? {} : { annotations: { 'archaware.dev/tolerations': annotation } }),
    },
    spec: { template: { spec: present === undefined ? {} : { tolerations: list(present) } } },
  });
}

/** `rolls to gpu amd, records amd past arm`; `keeps` what does not roll. */
function told(decision: ReturnType<typeof decideTemplate>): string {
  if (decision.kind === 'unchanged') return decision.kind;
  const { tolerations, past } = readRecord(decision.recorded);
  const gone = past.map(({ key, value, effect }) =>
    `${key}=${value}:${effect}`.replace(/^supported-arch=(.*)64:NoSchedule$/, '$1'),
  );
  const record = [namesOf(tolerations), ...(gone.length === 0 ? [] : ['past', ...gone])].join(' ').trim();
  return `${decision.rolls ? 'rolls to' : 'keeps'} ${namesOf(decision.tolerations)}, records ${decision.recorded === undefined ? 'nothing' : record}`;
}

type Row = [
  given: string,
  present: string | undefined,
  recorded: string | undefined,
  wanted: string,
  expected: string,
  liveTaints?: readonly string[],
  managedFields?: readonly JsonObject[],
];

describe('the decision for a template', () => {
  const LIVE = ['supported-arch:NoSchedule'];
  const SOFT = ['supported-arch:PreferNoSchedule'];
  const OLD = ['arch:NoSchedule'];
  const rows: Row[] = [
    ['no list', undefined, undefined, 'amd', 'rolls to amd, records amd'],
    ['an empty list', '', undefined, 'amd arm', 'rolls to amd arm, records amd arm'],
    ['what it should have', 'gpu amd', 'amd', 'amd', 'unchanged'],
    ['it tolerates everything already', '*', undefined, 'amd arm', 'unchanged'],
    ['its author gave it the very same', 'amd', undefined, 'amd', 'unchanged'],
    ['its author gave it one of two', 'amd', undefined, 'amd arm', 'rolls to amd arm, records arm'],
    ['its author tolerates everything now', 'amd *', 'amd', 'amd', 'rolls to *, records past amd'],
    ['its author gives it the very same now', 'amd gpu amd', 'amd', 'amd', 'rolls to gpu amd, records nothing'],
    ['it shrank, under a live taint', 'amd arm', 'amd arm', 'arm', 'rolls to arm, records arm past amd', LIVE],
    ['the set is another one', 'amd', 'amd', 'arm', 'rolls to arm, records arm past amd'],
    ['the set shrank, but its author wants the rest', 'amd arm', 'arm', 'arm', 'unchanged'],
    ['an update dropped ours', 'gpu', 'amd', 'amd', 'rolls to gpu amd, records amd'],
    ['an update dropped ours, wanted no more', 'gpu', 'amd', '', 'keeps gpu, records past amd'],
    ['the record is in another order', 'amd arm', 'arm amd', 'amd arm', 'keeps amd arm, records amd arm'],
    ['the record cannot be read', 'amd', '{', 'amd', 'keeps amd, records nothing'],
    ['the record lists what is not there', 'amd', 'arm', 'amd', 'keeps amd, records past arm'],

    // Key or effect have changed.
    ['the old key is on nodes still', 'old', 'old', 'amd', 'rolls to old amd, records old amd', OLD],
    ['both keys are on nodes', 'old amd', 'old amd', 'amd', 'unchanged', [...OLD, ...LIVE]],
    ['the old key is gone', 'old amd', 'old amd', 'amd', 'rolls to amd, records amd past arch=amd64:NoSchedule', LIVE],
    ['the old effect is on nodes still', 'soft', 'soft', 'amd', 'rolls to soft amd, records soft amd', SOFT],
    ['a name that Go does not have', 'amd invented', 'amd invented', 'amd', 'keeps amd invented, records amd'],
    ['a live taint makes nothing ours', 'old', undefined, 'amd', 'rolls to old amd, records amd', OLD],

    // An undo to an older revision brings back what archaware added and removed.
    ['an undo brings ours back', 'amd arm', 'amd past arm', 'amd', 'rolls to amd, records amd past arm', [], UPDATED],
    ['an undo brings back what is wanted', 'amd arm', 'amd past arm', 'amd arm', 'keeps amd arm, records amd arm'],
    ['an undo, and it tolerates everything', '* amd', 'past amd', 'amd', 'rolls to *, records past amd'],
    ['what is past is not there', 'amd', 'amd past arm', 'amd', 'unchanged'],
    ['its author adds what is past twice', 'amd arm arm', 'amd past arm', 'amd', 'rolls to amd arm, records amd'],
    ['its author applies what is past', 'amd arm', 'amd past arm', 'amd', 'keeps amd arm, records amd', [], APPLIED],
    ['its author applies another list', 'amd arm', 'amd arm', 'amd', 'rolls to amd, records amd past arm', [], APPLIED],
    [
      'a record of the past that does not have our form',
      'gpu amd',
      'amd past gpu=true:NoSchedule node-role.kubernetes.io/x=arm64:NoSchedule a=arm64:NoExecute x=',
      'amd',
      'keeps gpu amd, records amd',
    ],
  ];
  for (const [given, present, recorded, wanted, expected, liveTaints = [], managedFields = []] of rows) {
    it(`${given}: ${expected}, and unchanged when decided again`, () => {
      const tolerations = words(wanted).map((value) => toleration(`supported-arch=${value}64:NoSchedule`));
      const live = new Set(liveTaints);
      const decision = decideTemplate(daemonSet(present, recorded, managedFields), tolerations, live);
      expect(told(decision)).to.equal(expected);
      if (decision.kind !== 'set') return;
      const annotations = decision.recorded === undefined ? {} : { 'archaware.dev/tolerations': decision.recorded };
      const after = { metadata: { annotations }, spec: { template: { spec: { tolerations: decision.tolerations } } } };
      expect(told(decideTemplate(readDaemonSet(after), tolerations, live))).to.equal('unchanged');
    });
  }

  it('keeps a record bounded, however long the past is', () => {
    const keys = Array.from({ length: 200 }, (_, index) => `key-${index}=arm64:NoSchedule`);
    const decision = decideTemplate(daemonSet('amd arm', `amd arm past ${keys.join(' ')}`), [AMD], new Set());
    const { past, tolerations } = readRecord(decision.kind === 'set' ? decision.recorded : undefined);
    expect([past.length, tolerations]).to.deep.equal([63, [AMD]]);
    expect(past.at(-1)).to.deep.equal(ARM);
  });

  it('writes no entry of the past in the form that the admission policies restore', () => {
    const decision = decideTemplate(daemonSet('amd arm', 'amd arm'), [AMD], new Set());
    const text = decision.kind === 'set' ? decision.recorded : undefined;
    expect(text).to.include(JSON.stringify(AMD)).and.to.include(PAST_ARM).and.not.to.include(JSON.stringify(ARM));
    expect(text?.match(/[{][^{}]*[}]/g)).to.deep.equal([JSON.stringify(AMD)]);
  });

  it('names what a template carries of ours', () => {
    expect(carriedTolerations(daemonSet('gpu arm', 'amd past arm', UPDATED))).to.deep.equal([ARM]);
    expect(carriedTolerations(daemonSet('gpu arm', 'amd past arm', APPLIED))).to.deep.equal([]);
  });
});

describe('cleaning a template', () => {
  const rows: [
    given: string,
    present: string,
    recorded?: string | undefined,
    left?: string,
    managedFields?: readonly JsonObject[],
  ][] = [
    ['nothing of ours', 'gpu'],
    ['the very same of its author', 'amd'],
    ['ours among others', 'gpu amd * old', 'amd old', 'gpu *'],
    ['a record alone', 'gpu', 'amd', 'gpu'],
    ["ours twice, one of them its author's", 'amd amd', 'amd', 'amd'],
    ['ours that an undo brought back', 'gpu arm', 'past arm', 'gpu'],
    ['a record of the past alone', 'gpu', 'past arm', 'gpu'],
    ['ours, and no record', 'gpu amd old', undefined, 'gpu old', [OURS]],
    ['the very same of its author, beside a record of others', 'amd arm', 'arm', 'amd', [OURS]],
  ];
  for (const [given, present, recorded, left, managedFields] of rows) {
    it(`${given}: ${left === undefined ? 'unchanged' : `leaves ${left}`}`, () => {
      const decision = cleanTemplate(daemonSet(present, recorded, managedFields), TAINT);
      if (left === undefined) expect(decision).to.deep.equal({ kind: 'unchanged' });
      else expect(decision).to.deep.include({ kind: 'set', tolerations: list(left), recorded: undefined });
    });
  }
});

describe("the record of archaware's tolerations", () => {
  const of = (key: string, value: unknown, effect: string) => ({ key, operator: 'Exists', value, effect, more: 1 });
  const rows: [annotation: unknown, expected?: string][] = [
    ...['', 'null', '{}', '"x"', '[1, null, "x", [], {}]'].map((text): [string] => [text]),
    [undefined],
    [[of('', 'a', 'NoSchedule')]],
    [[of('k', 1, 'NoSchedule')]],
    [[of('k', 'arm', 'NoSchedule')], 'k=arm:NoSchedule'],
    [[of('k', 'arm', 'PreferNoSchedule')], 'k=arm:PreferNoSchedule'],
    [[of('k', 'arm', 'NoExecute')]],
    [[of('k', 'payments', 'NoSchedule')]],
    [[of('node-role.kubernetes.io/x', 'arm', 'NoSchedule')]],
    [[of('kubernetes.io/arch', 'arm', 'NoSchedule')], 'kubernetes.io/arch=arm:NoSchedule'],
    [[AMD, ARM], 'supported-arch=amd64:NoSchedule supported-arch=arm64:NoSchedule'],
  ];
  for (const [annotation, expected = ''] of rows) {
    const text = typeof annotation === 'string' ? annotation : JSON.stringify(annotation);
    it(`reads ${text} as ${expected || 'nothing'}`, () =>
      expect(readRecord(text).tolerations).to.deep.equal(words(expected).map((each) => toleration(each))));
  }
});

describe('whether a DaemonSet is rolled out', () => {
  const done = { observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3 };
  const rows: [given: string, status: JsonObject, expected: boolean][] = [
    ['all are new and available', done, true],
    ['the controller has not seen it', { ...done, observedGeneration: 1 }, false],
    ['one is of the old template', { ...done, updatedNumberScheduled: 2 }, false],
    ['one is not available', { ...done, numberAvailable: 2 }, false],
    ['none is wanted', { observedGeneration: 2 }, true],
    ['no status yet', {}, false],
  ];
  for (const [given, status, expected] of rows) {
    it(`${given}: ${expected ? 'yes' : 'no'}`, () => {
      const read = readDaemonSet({ metadata: { generation: 2 }, status });
      expect(read.rolledOut).to.equal(expected);
      expect(read.desired).to.equal(status.desiredNumberScheduled ?? 0);
    });
  }

  it('has the update strategy RollingUpdate by default', () => {
    expect(readDaemonSet({}).updateStrategy).to.equal('RollingUpdate');
    expect(readDaemonSet({ spec: { updateStrategy: { type: 'OnDelete' } } }).updateStrategy).to.equal('OnDelete');
  });
});
