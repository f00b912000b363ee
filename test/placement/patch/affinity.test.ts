import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import {
  type AffinityIntent,
  addedTo,
  PREFERRED_TERMS,
  REQUIRED,
  withAffinity,
  withoutRequired,
} from '../../../src/placement/patch/affinity.ts';
import { preference, prefers, requirement, requires, shown, term } from '../affinities.ts';

const BOTH = requirement('arch In amd64,arm64');
const ALL = 'arch In amd64,arm64';
const LINUX = requirement('os In linux');
const POOL = requirement('pool In fast');

function intent(required: AffinityIntent['required'], ...preferred: [architecture: string, weight: number][]) {
  return { required, preferred: preferred.map(([architecture, weight]) => ({ architecture, weight })) };
}

const asks = (...terms: readonly JsonObject[]) => ({ affinity: requires(...terms) });
const fields = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] };
const SELECTS = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };

type Row = readonly [given: string, spec: JsonObject, intent: AffinityIntent, expected: string | undefined];

/** `expected`: the affinity in one line; undefined: nothing is added. */
function check(rows: readonly Row[]): void {
  for (const [given, spec, what, expected] of rows) {
    it(`${given}: ${expected ?? 'nothing is added'}`, () => {
      const before = structuredClone(spec);
      const affinity = withAffinity(spec, what);
      expect(affinity && shown({ affinity })).to.equal(expected);
      expect(spec, 'what was given').to.deep.equal(before);
    });
  }
}

describe('the required node affinity', () => {
  const arch = intent([BOTH]);
  const NULL_TERMS = { affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: null } } } };
  check([
    ['no affinity', {}, arch, ALL],
    ['nothing is wanted', asks(term('zone In a')), intent([]), undefined],
    ['a term on another key', asks(term('zone In a')), arch, 'zone In a & arch In amd64,arm64'],
    ['a term against one', asks(term('arch NotIn s390x')), arch, undefined],
    ['a term on the old name of the architecture', asks(term('old-arch In arm64')), arch, undefined],
    ['one of two is on it', asks(term('arch In arm64'), term('zone In a')), arch, `arch In arm64 | zone In a & ${ALL}`],
    ['a term on the architecture and more', asks(term('zone In a', 'arch In arm64')), arch, undefined],
    ['a term of fields only', asks(fields), arch, 'arch In amd64,arm64 & metadata.name In n1'],
    ['an empty term stays, as it matches no node', asks({}), arch, undefined],
    ['an empty term beside another', asks({}, term('zone In a')), arch, '{} | zone In a & arch In amd64,arm64'],
    ['an empty list of terms, which the API server refuses', asks(), arch, undefined],
    ['null for the terms, which it refuses too', NULL_TERMS, arch, undefined],
  ]);
});

describe('a node selector of the pod', () => {
  const all = intent([BOTH, LINUX, POOL]);
  const selecting = (nodeSelector: JsonObject, affinity?: JsonObject) =>
    affinity === undefined ? { nodeSelector } : { nodeSelector, affinity };
  check([
    ['of its old name', selecting({ 'beta.kubernetes.io/arch': 'arm64' }), intent([BOTH]), undefined],
    ['of the architecture, as an empty text', selecting({ 'kubernetes.io/arch': '' }), intent([BOTH]), undefined],
    ['of the architecture, where more is wanted', SELECTS, all, 'os In linux & pool In fast'],
    ['of its old name', selecting({ 'beta.kubernetes.io/os': 'linux' }), all, 'arch In amd64,arm64 & pool In fast'],
    ['of a label that is matched', selecting({ pool: 'slow' }), all, 'arch In amd64,arm64 & os In linux'],
    ['of one, beside terms', selecting(SELECTS.nodeSelector, requires(term('zone In a'))), intent([BOTH]), undefined],
    ['of one, where one is preferred', SELECTS, intent([BOTH], ['arm64', 75]), 'prefers arch In arm64 (75)'],
    ['nothing', { nodeSelector: null }, intent([BOTH]), ALL],
  ]);
});

describe('several requirements', () => {
  check([
    [
      'each is added to the terms that do not speak of it',
      asks(term('arch In arm64'), term('old-os In linux'), term('pool Exists'), term('zone In a')),
      intent([BOTH, LINUX, POOL]),
      'arch In arm64 & os In linux & pool In fast' +
        ' | old-os In linux & arch In amd64,arm64 & pool In fast' +
        ' | pool Exists & arch In amd64,arm64 & os In linux' +
        ' | zone In a & arch In amd64,arm64 & os In linux & pool In fast',
    ],
  ]);
});

describe('the preferred node affinity', () => {
  const arm = intent([], ['arm64', 75], ['amd64', 25]);
  const both = { ...arm, required: [BOTH] };
  const ours = 'prefers arch In arm64 (75), arch In amd64 (25)';
  const has = {
    ...objectAt(requires(term('arch In arm64')), 'nodeAffinity'),
    ...objectAt(prefers('arm64=1'), 'nodeAffinity'),
  };
  const own = (...texts: string[]) => ({ affinity: prefers(...texts) });
  check([
    ['where there is no affinity', {}, arm, ours],
    ['beside what the pod prefers of other keys', own('zone In a'), arm, `prefers zone In a (1), ${ours.slice(8)}`],
    ['the pod prefers one among other things', own('zone In a', 'amd64=10'), arm, undefined],
    ['the pod prefers one by its old name', own('old-arch In amd64'), arm, undefined],
    ['an empty list of preferences', { affinity: { nodeAffinity: { [PREFERRED_TERMS]: [] } } }, arm, ours],
    ['the pod requires one: the preference is added', asks(term(ALL)), both, `${ALL}; ${ours}`],
    ['the pod requires and prefers some', { affinity: { nodeAffinity: has } }, both, undefined],
    ['the pod prefers one: what is required is added', own('amd64=10'), both, `${ALL}; prefers arch In amd64 (10)`],
  ]);
});

describe('affinity of other kinds', () => {
  it('is kept, like every unknown field', () => {
    const before = {
      podAffinity: { required: [1] },
      podAntiAffinity: { preferred: [2] },
      later: true,
      nodeAffinity: {
        [REQUIRED]: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'], new: 1 }], new: 2 }],
          new: 3,
        },
        [PREFERRED_TERMS]: [{ ...preference('zone In a'), new: 4 }],
        new: 5,
      },
    };
    expect(withAffinity({ affinity: before }, intent([BOTH], ['arm64', 75]))).to.deep.equal({
      ...before,
      nodeAffinity: {
        [REQUIRED]: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'], new: 1 }, BOTH], new: 2 },
          ],
          new: 3,
        },
        [PREFERRED_TERMS]: [{ ...preference('zone In a'), new: 4 }, preference('arm64=75')],
        new: 5,
      },
    });
  });
});

describe('requirements that archaware added earlier', () => {
  const ours = [{ key: 'kubernetes.io/arch', values: ['amd64', 'arm64'] }];
  const arm = { key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] } as const;
  const rows: [given: string, terms: JsonObject[], required: typeof arm | typeof BOTH, expected: string | undefined][] =
    [
      ['are narrowed by a further one', [term(ALL)], arm, 'arch In amd64,arm64 & arch In arm64'],
      ['are enough', [term(ALL)], BOTH, undefined],
      ["leave the author's own ones", [term('arch In amd64,s390x')], arm, undefined],
      ['are not narrowed twice', [term(ALL, 'arch In arm64')], arm, undefined],
    ];
  for (const [given, terms, required, expected] of rows) {
    it(given, () => {
      const affinity = withAffinity({ affinity: requires(...terms), ours }, { required: [required], preferred: [] });
      expect(affinity && shown({ affinity })).to.equal(expected);
    });
  }
});

describe('the requirements that were added to a spec', () => {
  const required = [BOTH, LINUX];
  const rows: [given: string, spec: JsonObject, expected: unknown][] = [
    ['the list is ours as a whole', {}, [BOTH, LINUX]],
    ['each of the terms, and only what it lacked', asks(term('zone In a'), {}, term(ALL)), required],
    ['nothing', asks(term(ALL, 'os In linux')), []],
    ['what a node selector left', { nodeSelector: { 'kubernetes.io/os': 'linux' } }, [BOTH]],
  ];
  for (const [given, spec, expected] of rows) {
    it(given, () => {
      const affinity = withAffinity(spec, { required, preferred: [] });
      expect(addedTo(spec, { affinity: affinity ?? spec.affinity }, required)).to.deep.equal(expected);
    });
  }
});

describe('the node affinity of a template without what archaware added', () => {
  const arch = intent([BOTH]);
  const rows: [given: string, affinity: JsonObject | undefined][] = [
    ['none', undefined],
    ['a term on another key', requires(term('zone In a'))],
    ['a term by fields', requires(fields)],
    ['an empty term beside another one', requires({}, term('zone In a'))],
    ['an own requirement beside another term', requires(term('arch In s390x'), term('zone In a'))],
    ['preferences', prefers('zone In a')],
    ['an affinity for pods', { podAntiAffinity: { x: [] } }],
  ];
  for (const [given, affinity] of rows) {
    it(`is as its author wrote it: ${given}`, () => {
      const added = withAffinity({ affinity }, arch);
      expect(added).not.to.deep.equal(affinity);
      expect(withoutRequired(added, ['amd64', 'arm64'])).to.deep.equal(affinity);
      expect(withoutRequired(added, []), 'nothing is recorded').to.equal(added);
      expect(withoutRequired(added, ['amd64']), 'another one is recorded').to.equal(added);
    });
  }
});
