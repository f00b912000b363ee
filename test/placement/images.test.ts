import { expect } from 'chai';
import { intersect, nodeArchitectures, readStatement, statementOf } from '../../src/placement/images.ts';

describe('the architectures that sets have in common', () => {
  const rows: [sets: string[][], expected: string[] | undefined][] = [
    [[], undefined],
    [[[]], []],
    [[['amd64']], ['amd64']],
    [[['amd64', 'arm64'], ['arm64']], ['arm64']],
    [
      [
        ['amd64', 'arm64'],
        ['amd64', 's390x'],
        ['arm64', 's390x'],
      ],
      [],
    ],
    [[['amd64', 'arm64', 's390x'], ['arm64', 's390x'], ['s390x'], ['amd64', 's390x']], ['s390x']],
  ];
  for (const [sets, expected] of rows)
    it(`of ${JSON.stringify(sets)} is ${JSON.stringify(expected) ?? 'not said'}`, () =>
      expect(intersect(sets)).to.deep.equal(expected));
});

describe('the nodes that an image runs on', () => {
  it('have the architectures of its platforms for the OS, sorted, without duplicates', () => {
    const platforms = [
      { os: 'linux', architecture: 'arm64', variant: 'v9' },
      { os: 'windows', architecture: 's390x' },
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64' },
    ];
    expect(nodeArchitectures(platforms, 'linux', {}, true)).to.deep.equal(['amd64', 'arm64']);
    expect(nodeArchitectures(platforms, 'windows', {}, true)).to.deep.equal(['s390x']);
    expect(nodeArchitectures(platforms, 'plan9', {}, true)).to.deep.equal([]);
  });

  const compatible = { amd64: ['386'], arm64: ['arm'] };
  const lesser: [has: string[], isIndex: boolean, expected: string[]][] = [
    [['386'], false, ['386', 'amd64']],
    [['386'], true, ['386', 'amd64']],
    [['386', 'arm'], true, ['386', 'amd64', 'arm', 'arm64']],
    [['386', 'arm64'], true, ['386', 'arm64']],
    [['amd64', 'arm'], true, ['amd64', 'arm']],
    [['amd64', 'arm'], false, ['amd64', 'arm', 'arm64']],
  ];
  for (const [has, isIndex, expected] of lesser) {
    it(`are ${expected.join()} for ${isIndex ? 'an index' : 'a single manifest'} of ${has.join()} with compatible architectures`, () => {
      const platforms = has.map((architecture) => ({ os: 'linux', architecture }));
      expect(nodeArchitectures(platforms, 'linux', compatible, isIndex)).to.deep.equal(expected);
    });
  }
});

describe("a pod's statement", () => {
  const rows: [text: string, expected: 'all' | string[]][] = [
    ['all', 'all'],
    [' All ', 'all'],
    ['arm64,amd64', ['amd64', 'arm64']],
    ['x86_64, aarch64', ['amd64', 'arm64']],
    ['s390x', ['s390x']],
  ];
  for (const [text, expected] of rows)
    it(`${JSON.stringify(text)} is read`, () => expect(readStatement(text)).to.deep.equal(expected));

  const refused: [text: string, meant: string][] = [
    ['x86', '; did you mean amd64, or 386 for 32 bits?'],
    ['amd64,armv7l', '; did you mean arm?'],
    ['arm64,all', ''],
    ['amd', '; did you mean amd64?'],
    ['riscv', '; did you mean riscv64?'],
    ['', ''],
    ['amd64,', ''],
    [',', ''],
    ['unknown', ''],
    ['amd64 arm64', ''],
    ['arm64/v8', '; did you mean arm64?'],
    ['a'.repeat(40), ''],
  ];
  for (const [text, meant] of refused) {
    it(`${JSON.stringify(text)} is refused, and counts as absent`, () => {
      const expected = `got ${JSON.stringify(text)}, expected all or architectures separated by commas (amd64,arm64)${meant}`;
      expect(() => readStatement(text)).to.throw(Error, new RegExp(`^${expected.replace(/[()?]/g, '\\$&')}$`));
      expect(statementOf(text)).to.equal(undefined);
    });
  }

  it('is cut in the message if it is long', () =>
    expect(() => readStatement(`amd64,${'!'.repeat(500)}`)).to.throw(
      Error,
      `got "amd64,${'!'.repeat(74)}", expected all or architectures separated by commas (amd64,arm64)`,
    ));
});
