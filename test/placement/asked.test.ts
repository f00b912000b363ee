import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { architectureAsked, readAsked } from '../../src/placement/asked.ts';
import { contradictionOf } from '../../src/placement/contradiction.ts';
import type { Decision, Placement } from '../../src/placement/decide.ts';
import { readDemands } from '../../src/placement/fit.ts';

const is = (key: string, operator: string, ...values: string[]): JsonObject => ({ key, operator, values });
const required = (...terms: readonly JsonObject[][]): JsonObject => {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }));
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
};

describe('the architectures that a pod asks for', () => {
  const rows: [given: string, spec: JsonObject, expected: string][] = [
    ['nothing', { nodeSelector: { disk: 'ssd' } }, 'open'],
    ['by its selector', { nodeSelector: { 'kubernetes.io/arch': 'arm64' } }, 'arm64 by nodeSelector: arm64'],
    ['by the old label', { nodeSelector: { 'beta.kubernetes.io/arch': 'arm64' } }, 'arm64 by nodeSelector: arm64'],
    [
      'by affinity',
      required([is('kubernetes.io/arch', 'In', 'arm64', 's390x')]),
      'arm64,s390x by node affinity: arm64,s390x',
    ],
    [
      'by every term',
      required([is('kubernetes.io/arch', 'In', 'arm64')], [is('kubernetes.io/arch', 'In', 's390x')]),
      'arm64,s390x by node affinity: arm64,s390x',
    ],
    ['by one term of two', required([is('kubernetes.io/arch', 'In', 'arm64')], [is('disk', 'Exists')]), 'open'],
    ['what it excludes', required([is('kubernetes.io/arch', 'NotIn', 'amd64')]), ' by node affinity: arm64,s390x'],
    [
      'by both',
      {
        nodeSelector: { 'kubernetes.io/arch': 'arm64' },
        ...required([is('kubernetes.io/arch', 'In', 'arm64', 'amd64')]),
      },
      'arm64 by nodeSelector and its node affinity: arm64',
    ],
    [
      'by both, which contradict each other',
      { nodeSelector: { 'kubernetes.io/arch': 'arm64' }, ...required([is('kubernetes.io/arch', 'In', 'amd64')]) },
      ' by nodeSelector and its node affinity: ',
    ],
  ];
  for (const [given, spec, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const asked = architectureAsked(readDemands(spec));
      const allowed = ['amd64', 'arm64', 's390x'].filter((name) => asked?.allows(name));
      expect(asked === undefined ? 'open' : `${asked.named} by ${asked.where}: ${allowed}`).to.equal(expected);
    });
  }
});

describe('a pod that asks for other architectures than its images have', () => {
  const place = (architectures: readonly string[], more: Partial<Placement> = {}): Placement => ({
    ...{ kind: 'place', architectures, basis: 'images', followsCluster: false, os: undefined },
    ...{ failed: [], unknown: [], images: [], ...more },
  });
  const ARM: JsonObject = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
  const wishes = 'requires kubernetes.io/arch=arm64 by its nodeSelector, but';
  type Row = [what: string, spec: JsonObject, decision: Decision | { kind: 'skip' }, note: string | undefined];
  const rows: readonly Row[] = [
    ['by its selector', ARM, place(['amd64']), `${wishes} its images run on amd64 only`],
    [
      'by its affinity',
      required([is('kubernetes.io/arch', 'In', 'arm64', 's390x')], [is('kubernetes.io/arch', 'NotIn', 'amd64')]),
      place(['amd64']),
      'requires kubernetes.io/arch In (arm64, s390x), or kubernetes.io/arch NotIn (amd64) by its node affinity, but its images run on amd64 only',
    ],
    ['by the old label', { nodeSelector: { 'beta.kubernetes.io/arch': 'arm64' } }, place(['arm64']), undefined],
    ['asks for nothing', { nodeSelector: { disk: 'ssd' } }, place(['amd64']), undefined],
    ['has one of them', ARM, place(['amd64', 'arm64']), undefined],
    [
      'by its own statement',
      ARM,
      place(['amd64'], { basis: 'statement' }),
      `${wishes} its annotation archaware.dev/architectures says amd64 only`,
    ],
    [
      'by what an earlier process wrote',
      ARM,
      place(['amd64'], { basis: 'written' }),
      `${wishes} by what archaware wrote to it before, its images run on amd64 only`,
    ],
    [
      'by those images that are known',
      ARM,
      place(['amd64'], { basis: 'open', unknown: ['b'] }),
      `${wishes} its known images run on amd64 only`,
    ],
    ['no: nothing is known', ARM, place(['amd64'], { basis: 'open', followsCluster: true, unknown: ['a'] }), undefined],
    ['no: a fallback proves nothing', ARM, place(['amd64'], { basis: 'fallback', unknown: ['a'] }), undefined],
    ['no: its images set no limit', ARM, place(['amd64'], { basis: 'cluster', followsCluster: true }), undefined],
    [
      'no: it waits',
      ARM,
      { kind: 'wait', images: [], failed: [], againInMs: undefined, givesUpInMs: undefined },
      undefined,
    ],
    ['no: it is skipped', ARM, { kind: 'skip' }, undefined],
  ];
  for (const [what, spec, decision, note] of rows) {
    it(`${what}: ${note ?? 'no contradiction'}`, () => {
      expect(contradictionOf(decision, readAsked(spec), { schedulable: [] })).to.equal(note);
    });
  }

  it('names the key that excludes the architecture which its images have', () => {
    expect(contradictionOf(place(['amd64']), readAsked(ARM), { schedulable: ['amd64'] })).to.equal(
      `${wishes} its images run on amd64 only within architectures.schedulable (amd64)`,
    );
  });

  it('takes few bytes, however long its demand is', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `a${index}`);
    const asked = readAsked(required([is('kubernetes.io/arch', 'In', ...many)]));
    expect(asked?.architectures).to.deep.equal([]);
    expect(asked?.text).to.have.length(200);
  });
});
