import { expect } from 'chai';
import { preferencesFor, preferredProblems, readPreferred } from '../../src/placement/preference.ts';

/** `arm64=75,amd64=25` of preferences. */
function text(preferences: ReturnType<typeof preferencesFor>): string {
  return preferences.map(({ architecture, weight }) => `${architecture}=${weight}`).join();
}

const OURS = 'archaware.dev/preferred';
const NOES = 'arch.noe.adevinta.com/preferred';
const BOTH = ['amd64', 'arm64'];
/** The label of archaware, and that of Noe. */
const ours = (value: string, noes?: string) => ({ [OURS]: value, ...(noes === undefined ? {} : { [NOES]: noes }) });

describe('the preferences of a pod', () => {
  const rows: [
    given: string,
    labels: Record<string, string>,
    namespace: string | undefined,
    settings: Record<string, number>,
    architectures: readonly string[] | undefined,
    expected: string,
  ][] = [
    ['none', {}, undefined, {}, undefined, ''],
    ['its label', ours('arm64'), undefined, {}, undefined, 'arm64=100'],
    ["Noe's label", { [NOES]: 'arm64' }, undefined, {}, undefined, 'arm64=100'],
    ['the settings', {}, undefined, { arm64: 75 }, undefined, 'arm64=75'],
    ['the heaviest comes first', {}, 'amd64=25,arm64=75', {}, undefined, 'arm64=75,amd64=25'],
    ["its label before Noe's", ours('arm64', 'amd64'), undefined, {}, undefined, 'arm64=100'],
    ["Noe's label before the namespace", { [NOES]: 'amd64' }, 'arm64=75', {}, undefined, 'amd64=100'],
    ['the namespace before the settings', {}, 'arm64=75', { amd64: 5 }, undefined, 'arm64=75'],
    ['what the pod cannot run on is left out', {}, 's390x=90,arm64=75', {}, BOTH, 'arm64=75'],
    ['a label outside the set is passed over', ours('s390x'), undefined, { arm64: 75 }, BOTH, 'arm64=75'],
    ['all are outside the set', ours('s390x'), 'ppc64le=90', { riscv64: 75 }, BOTH, ''],
    ['an annotation that cannot be read', {}, 'arm64', { amd64: 75 }, undefined, 'amd64=75'],
  ];
  for (const [given, labels, preferred, own, architectures, expected] of rows) {
    it(`${given}: ${expected || 'nothing'}`, () => {
      const settings = { preferred: own };
      expect(text(preferencesFor({ labels, preferred, settings }, architectures))).to.equal(expected);
    });
  }
});

describe("a namespace's annotation", () => {
  const rows: [annotation: string, expected: string | undefined][] = [
    ['arm64=75', 'arm64=75'],
    ['arm64=1,amd64=100', 'arm64=1,amd64=100'],
    [' arm64 = 75 , x86_64=25 ', 'arm64=75,amd64=25'],
    ['', undefined],
    ['arm64', undefined],
    ['arm64=', undefined],
    ['=5', undefined],
    ['arm64=0', undefined],
    ['arm64=101', undefined],
    ['arm64=-5', undefined],
    ['arm64=75,', undefined],
    ['unknown=5', undefined],
    ['arm 64=5', undefined],
    ['arm64=75,aarch64=25', undefined],
  ];
  for (const [annotation, expected] of rows) {
    it(`${JSON.stringify(annotation)}: ${expected ?? 'is refused, with what is allowed'}`, () => {
      if (expected !== undefined) expect(text(readPreferred(annotation))).to.equal(expected);
      else
        expect(() => readPreferred(annotation)).to.throw(`got ${JSON.stringify(annotation)}, expected architectures`);
    });
  }

  it('is cut in the message', () => expect(() => readPreferred('x'.repeat(5000))).to.throw(/^got "x{80}", expected/));
});

describe('labels of a pod that prefer an architecture that no node has', () => {
  const expected = 'expected an architecture as nodes report it (amd64, arm64, arm, 386, ppc64le, riscv64, s390x, …)';
  const rows: [labels: Record<string, string>, problems: readonly string[]][] = [
    [{}, []],
    [ours('arm64', 'AArch64'), []],
    // A valid architecture that no node of this cluster may have.
    [ours('s390x'), []],
    [ours('x64'), [`label ${OURS}: got "x64", ${expected}; did you mean amd64?`]],
    [{ [NOES]: 'armv7l', [OURS]: 'arm64' }, [`label ${NOES}: got "armv7l", ${expected}; did you mean arm?`]],
    [ours(''), [`label ${OURS}: got "", ${expected}`]],
  ];
  for (const [labels, problems] of rows)
    it(`${JSON.stringify(labels)}: ${problems.length === 0 ? 'none' : 'named'}`, () =>
      expect(preferredProblems({ labels })).to.deep.equal(problems));

  it('are reported also for the annotation of a namespace, with a suggestion', () => {
    expect(() => readPreferred('arm64=75,x86=25')).to.throw(/^got .*; did you mean amd64, or 386 for 32 bits\?$/);
    expect(() => readPreferred('arm64=75,arm64=25')).to.throw(/\(arm64=75,amd64=25\)$/);
  });
});
