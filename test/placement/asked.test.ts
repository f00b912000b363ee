import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Decision } from '../../src/placement/decide.ts';
import { readDemands } from '../../src/placement/fit.ts';
import { architectureAsked, readAsked } from '../../src/placement/objects/asked-platform.ts';
import { contradictionOf } from '../../src/placement/reasons.ts';
import { requires, term } from './affinities.ts';
import { place } from './objects.ts';

const OPEN = { basis: 'open', followsCluster: true, unknown: ['a'] } as const;
const SOME = { basis: 'open', unknown: ['b'] } as const;
const WAIT: Decision = { kind: 'wait', images: [], failed: [], againInMs: undefined, givesUpInMs: undefined };
const ASKS_ARM: JsonObject = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const asks = (...terms: readonly JsonObject[]) => ({ affinity: requires(...terms) });

describe('the architectures that a pod asks for', () => {
  const rows: [given: string, spec: JsonObject, expected: string][] = [
    ['nothing', { nodeSelector: { disk: 'ssd' } }, 'open'],
    ['by its selector', ASKS_ARM, 'arm64 by nodeSelector: arm64'],
    ['by the old label', { nodeSelector: { 'beta.kubernetes.io/arch': 'arm64' } }, 'arm64 by nodeSelector: arm64'],
    ['by affinity', asks(term('arch In arm64,s390x')), 'arm64,s390x by node affinity: arm64,s390x'],
    ['by every term', asks(term('arch In arm64'), term('arch In s390x')), 'arm64,s390x by node affinity: arm64,s390x'],
    ['by one term of two', asks(term('arch In arm64'), term('disk Exists')), 'open'],
    ['what it excludes', asks(term('arch NotIn amd64')), ' by node affinity: arm64,s390x'],
    ['by two in conflict', { ...ASKS_ARM, ...asks(term('arch In amd64')) }, ' by nodeSelector and its node affinity: '],
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
  const wishes = 'requires kubernetes.io/arch=arm64 by its nodeSelector, but';
  const WRITTEN = 'by what archaware wrote to it before, its images run';
  type Row = [what: string, spec: JsonObject, decision: Decision | { kind: 'skip' }, note: string | undefined];
  const rows: readonly Row[] = [
    ['by its selector', ASKS_ARM, place(['amd64']), `${wishes} its images run on amd64 only`],
    [
      'by its affinity',
      asks(term('arch In arm64,s390x'), term('arch NotIn amd64')),
      place(['amd64']),
      'requires kubernetes.io/arch In (arm64, s390x), or kubernetes.io/arch NotIn (amd64) by its node affinity, but its images run on amd64 only',
    ],
    ['by the old label', { nodeSelector: { 'beta.kubernetes.io/arch': 'arm64' } }, place(['arm64']), undefined],
    ['asks for nothing', { nodeSelector: { disk: 'ssd' } }, place(['amd64']), undefined],
    ['has one of them', ASKS_ARM, place(['amd64', 'arm64']), undefined],
    [
      'by its own statement',
      ASKS_ARM,
      place(['amd64'], { basis: 'statement' }),
      `${wishes} its annotation archaware.dev/architectures says amd64 only`,
    ],
    ['by what was written', ASKS_ARM, place(['amd64'], { basis: 'written' }), `${wishes} ${WRITTEN} on amd64 only`],
    ['by those that are known', ASKS_ARM, place(['amd64'], SOME), `${wishes} its known images run on amd64 only`],
    ['no: nothing is known', ASKS_ARM, place(['amd64'], OPEN), undefined],
    ['no: a fallback proves nothing', ASKS_ARM, place(['amd64'], { basis: 'fallback', unknown: ['a'] }), undefined],
    ['no: its images set no limit', ASKS_ARM, place(['amd64'], { basis: 'cluster', followsCluster: true }), undefined],
    ['no: it waits', ASKS_ARM, WAIT, undefined],
    ['no: it is skipped', ASKS_ARM, { kind: 'skip' }, undefined],
  ];
  for (const [what, spec, decision, note] of rows)
    it(`${what}: ${note ?? 'no contradiction'}`, () =>
      expect(contradictionOf(decision, readAsked(spec), { schedulable: [] })).to.equal(note));

  it('names the key that excludes the architecture which its images have', () =>
    expect(contradictionOf(place(['amd64']), readAsked(ASKS_ARM), { schedulable: ['amd64'] })).to.equal(
      `${wishes} its images run on amd64 only within architectures.schedulable (amd64)`,
    ));

  it('takes few bytes, however long its demand is', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `a${index}`);
    const asked = readAsked(asks(term(`arch In ${many}`)));
    expect(asked?.architectures).to.deep.equal([]);
    expect(asked?.text).to.have.length(200);
  });
});
