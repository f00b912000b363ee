import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { placingFor } from '../../src/placement/placing.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { requires, term } from './affinities.ts';
import { type Case, decideCase, failed, input, known, subjectOf, template } from './objects.ts';

const BOTH = known('linux/amd64,linux/arm64');
const AMD = known('linux/amd64');
const ARM = known('linux/arm64');
const WINDOWS_BY_AFFINITY = { affinity: requires(term('os In windows')) };
const MIXED = known('linux/amd64,linux/arm64,windows/amd64');

const SHORT: Readonly<Record<string, string>> = { 'kubernetes.io/arch': 'arch', 'kubernetes.io/os': 'OS' };

/** The intent for a pod, in one line: `tolerates amd64; requires arch=amd64 OS=linux label pool=fast; prefers arm64=75`. */
function told(what: Case, preferred?: string): string {
  const decision = decideCase(what);
  if (decision.kind !== 'place') throw new Error(`expected a placement, got ${decision.kind}`);
  const { tolerations, affinity } = placingFor(decision, subjectOf(what, preferred));
  const tolerated = tolerations.map(({ value }) => value).join();
  const required = affinity?.required
    .map(({ key, values }) => `${SHORT[key] ?? `label ${key}`}=${values.join()}`)
    .join(' ');
  const wished = affinity?.preferred.map(({ architecture, weight }) => `${architecture}=${weight}`).join();
  return [tolerated && `tolerates ${tolerated}`, required && `requires ${required}`, wished && `prefers ${wished}`]
    .filter(Boolean)
    .join('; ');
}

function placed(
  answers: Parameters<typeof input>[0],
  settings: Partial<Settings>,
  metadata: JsonObject = {},
  spec: JsonObject = {},
): Case {
  return input(answers, { template: template(Object.keys(answers), spec, metadata), settings });
}

type Row = readonly [given: string, what: Case, expected: string, namespace?: string];

function check(rows: readonly Row[]): void {
  for (const [given, what, expected, namespace] of rows)
    it(`${given}: ${expected || 'nothing'}`, () => expect(told(what, namespace)).to.equal(expected));
}

describe('what each mode adds to a pod', () => {
  const preferred = { arm64: 75 };
  const AFFINE = 'requires arch=amd64,arm64; prefers arm64=75';
  check([
    ['taints', placed({ a: BOTH }, { mode: 'taints', preferred }), 'tolerates amd64,arm64'],
    ['observe', placed({ a: BOTH }, { mode: 'observe', preferred }), ''],
    ['affinity', placed({ a: BOTH }, { mode: 'affinity', preferred }), AFFINE],
    ['both', placed({ a: BOTH }, { mode: 'both', preferred }), `tolerates amd64,arm64; ${AFFINE}`],
    // The guard policies refuse a toleration of it, and with it all others of the write.
    [
      'an image that states a port that Go does not have',
      placed({ a: known('linux/amd64,linux/s390') }, { mode: 'both' }),
      'tolerates amd64; requires arch=amd64,s390',
    ],
  ]);
});

describe('what affinity requires', () => {
  const of = (answers: Parameters<typeof input>[0], more: Partial<Settings> = {}, ...rest: JsonObject[]) =>
    placed(answers, { mode: 'affinity', ...more }, ...rest);
  const open = failed(300);
  const BOTH_OPEN = { a: open, b: MIXED };
  check([
    ['the set of its images', of({ a: BOTH, b: ARM }), 'requires arch=arm64'],
    ['nothing where it is open', of({ a: open }), ''],
    ['that, sorted, if it is open', of({ a: open }, { schedulable: ['s390x', 'arm64'] }), 'requires arch=arm64,s390x'],
    ['the OS where an image exists for several', of(BOTH_OPEN), 'requires arch=amd64,arm64 OS=linux'],
    ["the pod's own OS", of({ a: MIXED }, {}, {}, WINDOWS_BY_AFFINITY), 'requires arch=amd64 OS=windows'],
  ]);
});

describe('pods.matchNodeLabels', () => {
  const matched = (matchNodeLabels: string[], labels: JsonObject) =>
    placed({ a: ARM }, { mode: 'affinity', matchNodeLabels }, { labels });
  const arm = 'requires arch=arm64';
  check([
    ['two of them', matched(['pool', 'x', 'team'], { team: 'a', pool: 'fast' }), `${arm} label pool=fast label team=a`],
    ['one with an empty value', matched(['pool'], { pool: '' }), `${arm} label pool=`],
    ['a name that every object has', matched(['constructor'], {}), arm],
    [
      'also where no architecture is required',
      placed({}, { mode: 'affinity', matchNodeLabels: ['pool'] }, { labels: { pool: 'fast' } }),
      'requires label pool=fast',
    ],
    ['not by taints', placed({ a: ARM }, { matchNodeLabels: ['pool'] }, { labels: { pool: 'x' } }), 'tolerates arm64'],
  ]);
});

describe('what affinity prefers', () => {
  const mode = 'affinity';
  const arch = 'requires arch=amd64,arm64';
  const labels = { 'archaware.dev/preferred': 'arm64' };
  check([
    ['the pod before it', placed({ a: BOTH }, { mode }, { labels }), `${arch}; prefers arm64=100`, 'amd64=5'],
    ['what it can run on', placed({ a: AMD }, { mode, preferred: { arm64: 9 } }, { labels }), 'requires arch=amd64'],
    ['anything where it is open', placed({ a: failed(300) }, { mode, preferred: { s390x: 9 } }), 'prefers s390x=9'],
    ['schedulable', placed({ a: failed(300) }, { mode, schedulable: ['amd64'] }), 'requires arch=amd64', 'arm64=75'],
  ]);
});
