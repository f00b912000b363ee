import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { cleanTemplate } from '../../../src/placement/clean/cleaned.ts';
import { readDaemonSet, readRecord, readRecorded } from '../../../src/placement/objects/daemonset.ts';
import { carriedTolerations, decideTemplate } from '../../../src/placement/rollout/template.ts';
import { toleration } from '../objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const INVENTED = toleration('supported-arch=zz1:NoSchedule');
const OLD = toleration('arch=amd64:NoSchedule');
const SOFT = toleration('supported-arch=amd64:PreferNoSchedule');
const AUTHORS = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule', new: { field: 1 } };
const EVERYTHING = { operator: 'Exists' };
const TAINT = { key: 'supported-arch', effect: 'NoSchedule' };

/** The record of a template that once had these of ours, as `key=value:effect`. */
function withPast(recorded: readonly JsonObject[], past: readonly string[]): string {
  return JSON.stringify({ images: [], past, subject: '', tolerations: recorded });
}

const LIST = { 'f:spec': { 'f:template': { 'f:spec': { 'f:tolerations': {} } } } };
/** `metadata.managedFields` after a server-side apply of the list, and after any other write of it. */
const APPLIED = [{ manager: 'helm', operation: 'Apply', fieldsV1: LIST }];
const OURS = { manager: 'archaware-controller', operation: 'Update', fieldsV1: {} };
const UPDATED = [{ manager: 'kubectl', operation: 'Update', fieldsV1: LIST }];

function daemonSet(
  present: readonly JsonObject[] | undefined,
  recorded: readonly JsonObject[] | string | undefined,
  managedFields: readonly JsonObject[] = [],
) {
  return readDaemonSet({
    metadata: {
      managedFields,
      ...(recorded === undefined
        ? {}
        : {
            annotations: {
              'archaware.dev/tolerations': typeof recorded === 'string' ? recorded : JSON.stringify(recorded),
            },
          }),
    },
    spec: { template: { spec: present === undefined ? {} : { tolerations: present } } },
  });
}

type Expected = {
  tolerations: readonly JsonObject[];
  recorded: readonly JsonObject[];
  past: readonly string[];
  rolls: boolean;
};
const rolls = (
  tolerations: readonly JsonObject[],
  recorded: readonly JsonObject[],
  past: readonly string[] = [],
): Expected => ({ tolerations, recorded, past, rolls: true });
const annotates = (...args: Parameters<typeof rolls>): Expected => ({ ...rolls(...args), rolls: false });

type Row = [
  given: string,
  present: readonly JsonObject[] | undefined,
  recorded: readonly JsonObject[] | string | undefined,
  wanted: readonly ReturnType<typeof toleration>[],
  expected: 'unchanged' | Expected,
  liveTaints?: readonly string[],
  managedFields?: readonly JsonObject[],
];

const PAST_AMD = 'supported-arch=amd64:NoSchedule';
const PAST_ARM = 'supported-arch=arm64:NoSchedule';

describe('the decision for a template', () => {
  const rows: Row[] = [
    ['no list', undefined, undefined, [AMD], rolls([AMD], [AMD])],
    ['an empty list', [], undefined, [AMD, ARM], rolls([AMD, ARM], [AMD, ARM])],
    ['what it should have', [AUTHORS, AMD], [AMD], [AMD], 'unchanged'],
    ['nothing wanted', [AUTHORS], undefined, [], 'unchanged'],
    [
      "its author's own are kept, in their place",
      [AUTHORS, { key: 'x', operator: 'Exists' }],
      undefined,
      [ARM],
      rolls([AUTHORS, { key: 'x', operator: 'Exists' }, ARM], [ARM]),
    ],
    ['it tolerates everything already', [EVERYTHING], undefined, [AMD, ARM], 'unchanged'],
    ['its author gave it the very same', [AMD], undefined, [AMD], 'unchanged'],
    ['its author gave it one of two', [AMD], undefined, [AMD, ARM], rolls([AMD, ARM], [ARM])],
    [
      'its author tolerates everything from now on',
      [AMD, EVERYTHING],
      [AMD],
      [AMD],
      rolls([EVERYTHING], [], [PAST_AMD]),
    ],
    [
      'its author gives it the very same from now on',
      [AMD, AUTHORS, { ...AMD }],
      [AMD],
      [AMD],
      rolls([AUTHORS, AMD], []),
    ],
    ['the set grew', [AMD], [AMD], [AMD, ARM], rolls([AMD, ARM], [AMD, ARM])],
    ['the set shrank', [AMD, AUTHORS, ARM], [AMD, ARM], [ARM], rolls([AUTHORS, ARM], [ARM], [PAST_AMD])],
    [
      'the set shrank, under a taint that nodes carry',
      [AMD, ARM],
      [AMD, ARM],
      [ARM],
      rolls([ARM], [ARM], [PAST_AMD]),
      ['supported-arch:NoSchedule'],
    ],
    ['the set is another one', [AMD], [AMD], [ARM], rolls([ARM], [ARM], [PAST_AMD])],
    ['the set shrank, but its author wants the rest', [AMD, ARM], [ARM], [ARM], 'unchanged'],
    ['an update dropped ours', [AUTHORS], [AMD], [AMD], rolls([AUTHORS, AMD], [AMD])],
    ['an update dropped ours, and they are wanted no more', [AUTHORS], [AMD], [], annotates([AUTHORS], [], [PAST_AMD])],
    [
      'an update changed ours',
      [{ ...AMD, tolerationSeconds: 5 }],
      [AMD],
      [ARM],
      rolls([{ ...AMD, tolerationSeconds: 5 }, ARM], [ARM], [PAST_AMD]),
    ],
    ['the record is in another order', [AMD, ARM], [ARM, AMD], [AMD, ARM], annotates([AMD, ARM], [AMD, ARM])],
    ['the record cannot be read', [AMD], '{', [AMD], annotates([AMD], [])],
    ['the record lists what is not there', [AMD], [ARM], [AMD], annotates([AMD], [], [PAST_ARM])],

    // Key or effect have changed.
    ['the old key is on nodes still', [OLD], [OLD], [AMD], rolls([OLD, AMD], [OLD, AMD]), ['arch:NoSchedule']],
    [
      'both keys are on nodes',
      [OLD, AMD],
      [OLD, AMD],
      [AMD],
      'unchanged',
      ['arch:NoSchedule', 'supported-arch:NoSchedule'],
    ],
    [
      'the old key is on no node any more',
      [OLD, AMD],
      [OLD, AMD],
      [AMD],
      rolls([AMD], [AMD], ['arch=amd64:NoSchedule']),
      ['supported-arch:NoSchedule'],
    ],
    [
      'the old effect is on nodes still',
      [SOFT],
      [SOFT],
      [AMD],
      rolls([SOFT, AMD], [SOFT, AMD]),
      ['supported-arch:PreferNoSchedule'],
    ],
    [
      'a name that Go does not have, which an earlier version added',
      [AMD, INVENTED],
      [AMD, INVENTED],
      [AMD],
      annotates([AMD, INVENTED], [AMD]),
    ],
    [
      'a live taint does not make ours what is not recorded',
      [OLD],
      undefined,
      [AMD],
      rolls([OLD, AMD], [AMD]),
      ['arch:NoSchedule'],
    ],

    // An undo to an older revision brings back what archaware added and removed.
    [
      'an undo brings ours back',
      [AMD, ARM],
      withPast([AMD], [PAST_ARM]),
      [AMD],
      rolls([AMD], [AMD], [PAST_ARM]),
      [],
      UPDATED,
    ],
    [
      'an undo brings ours back, and its images run there again',
      [AMD, ARM],
      withPast([AMD], [PAST_ARM]),
      [AMD, ARM],
      annotates([AMD, ARM], [AMD, ARM]),
    ],
    [
      'an undo brings ours back to a template that tolerates everything',
      [EVERYTHING, AMD],
      withPast([], [PAST_AMD]),
      [AMD],
      rolls([EVERYTHING], [], [PAST_AMD]),
    ],
    ['what is past is not there', [AMD], withPast([AMD], [PAST_ARM]), [AMD], 'unchanged'],
    [
      'its author adds what is past twice, and one is enough',
      [AMD, ARM, { ...ARM }],
      withPast([AMD], [PAST_ARM]),
      [AMD],
      rolls([AMD, ARM], [AMD]),
    ],
    [
      'its author applies what is past: it is the author’s',
      [AMD, ARM],
      withPast([AMD], [PAST_ARM]),
      [AMD],
      annotates([AMD, ARM], [AMD]),
      [],
      APPLIED,
    ],
    [
      'its author applies another list: what the record lists is ours still',
      [AMD, ARM],
      [AMD, ARM],
      [AMD],
      rolls([AMD], [AMD], [PAST_ARM]),
      [],
      APPLIED,
    ],
    [
      'a record of the past that does not have our form',
      [AUTHORS, AMD],
      withPast([AMD], ['gpu=true:NoSchedule', 'node-role.kubernetes.io/x=arm64:NoSchedule', 'a=arm64:NoExecute', 'x']),
      [AMD],
      annotates([AUTHORS, AMD], [AMD]),
    ],
  ];
  for (const [given, present, recorded, wanted, expected, liveTaints = [], managedFields = []] of rows) {
    const saying =
      expected === 'unchanged'
        ? expected
        : `${expected.rolls ? 'rolls' : 'annotates'} to ${expected.tolerations.length}`;
    it(`${given}: ${saying}`, () => {
      const decision = decideTemplate(daemonSet(present, recorded, managedFields), wanted, new Set(liveTaints));
      if (expected === 'unchanged') {
        expect(decision).to.deep.equal({ kind: 'unchanged' });
        return;
      }
      expect(decision).to.deep.include({ kind: 'set', tolerations: expected.tolerations, rolls: expected.rolls });
      const record = decision.kind === 'set' ? readRecord(decision.recorded) : undefined;
      const past = record?.past.map(({ key, value, effect }) => `${key}=${value}:${effect}`);
      expect([record?.tolerations, past]).to.deep.equal([expected.recorded, expected.past]);
      if (expected.recorded.length + expected.past.length === 0 && typeof recorded !== 'string') {
        expect(decision).to.include({ recorded: undefined });
      }
    });

    it(`${given}: unchanged when decided again`, () => {
      const decision = decideTemplate(daemonSet(present, recorded, managedFields), wanted, new Set(liveTaints));
      if (decision.kind !== 'set') return;
      const after = daemonSet(decision.tolerations, decision.recorded);
      expect(decideTemplate(after, wanted, new Set(liveTaints))).to.deep.equal({ kind: 'unchanged' });
    });
  }

  it('keeps a record bounded, however long the past is', () => {
    const keys = Array.from({ length: 200 }, (_, index) => `key-${index}=arm64:NoSchedule`);
    const decision = decideTemplate(daemonSet([AMD, ARM], withPast([AMD, ARM], keys)), [AMD], new Set());
    const { past, tolerations } = readRecord(decision.kind === 'set' ? decision.recorded : undefined);
    expect([past.length, tolerations]).to.deep.equal([63, [AMD]]);
    expect(past.at(-1)).to.deep.equal(ARM);
  });

  it('writes no entry of the past in the form that the admission policies restore', () => {
    const decision = decideTemplate(daemonSet([AMD, ARM], [AMD, ARM]), [AMD], new Set());
    const text = decision.kind === 'set' ? decision.recorded : undefined;
    expect(text).to.include(JSON.stringify(AMD)).and.to.include(PAST_ARM).and.not.to.include(JSON.stringify(ARM));
    expect(text?.match(/[{][^{}]*[}]/g)).to.deep.equal([JSON.stringify(AMD)]);
  });

  it('names what a template carries of ours', () => {
    const record = withPast([AMD], [PAST_ARM]);
    expect(carriedTolerations(daemonSet([AUTHORS, ARM], record, UPDATED))).to.deep.equal([ARM]);
    expect(carriedTolerations(daemonSet([AUTHORS, ARM], record, APPLIED))).to.deep.equal([]);
  });

  it('keeps what is there as the very objects that were read', () => {
    const before = daemonSet([AUTHORS, AMD], [AMD]);
    const decision = decideTemplate(before, [AMD, ARM], new Set());
    expect(decision.kind === 'set' && decision.tolerations[0]).to.equal(before.template.tolerations?.[0]);
  });
});

describe('cleaning a template', () => {
  const rows: [
    given: string,
    present: readonly JsonObject[],
    recorded: readonly JsonObject[] | string | undefined,
    left?: JsonObject[],
    managedFields?: readonly JsonObject[],
  ][] = [
    ['nothing of ours', [AUTHORS], undefined],
    ['the very same of its author', [AMD], undefined],
    ['ours among others', [AUTHORS, AMD, EVERYTHING, OLD], [AMD, OLD], [AUTHORS, EVERYTHING]],
    ['a record alone', [AUTHORS], [AMD], [AUTHORS]],
    ["ours twice, one of them its author's", [AMD, { ...AMD }], [AMD], [AMD]],
    ['ours that an undo brought back', [AUTHORS, ARM], withPast([], [PAST_ARM]), [AUTHORS]],
    ['a record of the past alone', [AUTHORS], withPast([], [PAST_ARM]), [AUTHORS]],
    ['ours, and no record', [AUTHORS, AMD, OLD], undefined, [AUTHORS, OLD], [OURS]],
    ['the very same of its author, beside a record of others', [AMD, ARM], [ARM], [AMD], [OURS]],
  ];
  for (const [given, present, recorded, left, managedFields] of rows) {
    it(`${given}: ${left === undefined ? 'unchanged' : `leaves ${left.length}`}`, () => {
      const decision = cleanTemplate(daemonSet(present, recorded, managedFields), TAINT);
      if (left === undefined) expect(decision).to.deep.equal({ kind: 'unchanged' });
      else expect(decision).to.deep.include({ kind: 'set', tolerations: left, recorded: undefined });
    });
  }
});

describe("the record of archaware's tolerations", () => {
  const rows: [annotation: string | undefined, expected: readonly JsonObject[]][] = [
    [undefined, []],
    ['', []],
    ['null', []],
    ['{}', []],
    ['"x"', []],
    ['[1, null, "x", [], {}]', []],
    ['[{"key":"","value":"a","effect":"NoSchedule"}]', []],
    ['[{"key":"k","value":1,"effect":"NoSchedule"}]', []],
    [
      '[{"key":"k","operator":"Exists","value":"arm","effect":"NoSchedule","more":1}]',
      [toleration('k=arm:NoSchedule')],
    ],
    ['[{"key":"k","value":"arm","effect":"PreferNoSchedule"}]', [toleration('k=arm:PreferNoSchedule')]],
    ['[{"key":"k","value":"arm","effect":"NoExecute"}]', []],
    ['[{"key":"k","value":"payments","effect":"NoSchedule"}]', []],
    ['[{"key":"node-role.kubernetes.io/x","value":"arm","effect":"NoSchedule"}]', []],
    [
      '[{"key":"kubernetes.io/arch","value":"arm","effect":"NoSchedule"}]',
      [toleration('kubernetes.io/arch=arm:NoSchedule')],
    ],
    [JSON.stringify([AMD, ARM]), [AMD, ARM]],
  ];
  for (const [annotation, expected] of rows) {
    it(`reads ${annotation ?? 'nothing'} as ${expected.length}`, () => {
      expect(readRecorded(annotation)).to.deep.equal(expected);
    });
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
