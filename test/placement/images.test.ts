import { expect } from 'chai';
import { intersect, nodeArchitectures, readStatement } from '../../src/placement/images.ts';
import { isArchitectureName, normaliseArchitecture } from '../../src/placement/platform.ts';

describe('the name of an architecture', () => {
  const rows: [text: string, expected: string | undefined][] = [
    ['amd64', 'amd64'],
    ['x86_64', 'amd64'],
    ['x86-64', 'amd64'],
    ['X86_64', 'amd64'],
    ['aarch64', 'arm64'],
    [' arm64\n', 'arm64'],
    ['armhf', 'arm'],
    ['i386', '386'],
    ['i686', '386'],
    ['x86', '386'],
    ['386', '386'],
    ['ppc64le', 'ppc64le'],
    ['mips64le', 'mips64le'],
    ['unknown', undefined],
    ['Unknown', undefined],
    ['', undefined],
    ['-', undefined],
    ['arm64/v8', undefined],
    ['arm64-', undefined],
    ['arm64_', undefined],
    ['amd64:NoSchedule', undefined],
    ['amd64\u0000', undefined],
    ['ａｍｄ64', undefined],
    ['a'.repeat(33), undefined],
  ];
  for (const [text, expected] of rows) {
    it(`${JSON.stringify(text)} is ${expected ?? 'none'}`, () => {
      expect(normaliseArchitecture(text)).to.equal(expected);
    });
  }

  it('is its own spelling', () => {
    for (const [, name] of rows) {
      if (name === undefined) continue;
      expect(normaliseArchitecture(name)).to.equal(name);
      expect(isArchitectureName(name)).to.equal(true);
    }
  });
});

describe('what is common to sets', () => {
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
  for (const [sets, expected] of rows) {
    it(`of ${JSON.stringify(sets)} is ${JSON.stringify(expected) ?? 'not said'}`, () => {
      expect(intersect(sets)).to.deep.equal(expected);
    });
  }
});

describe('the nodes that an image runs on', () => {
  it('are those of its platforms for the OS, sorted, each once', () => {
    const platforms = [
      { os: 'linux', architecture: 'arm64', variant: 'v9' },
      { os: 'windows', architecture: 's390x' },
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64' },
    ];
    expect(nodeArchitectures(platforms, 'linux', {})).to.deep.equal(['amd64', 'arm64']);
    expect(nodeArchitectures(platforms, 'windows', {})).to.deep.equal(['s390x']);
    expect(nodeArchitectures(platforms, 'plan9', {})).to.deep.equal([]);
  });
});

describe('a statement that cannot be read', () => {
  it('is named, cut, with what is allowed', () => {
    expect(() => readStatement(`amd64,${'!'.repeat(500)}`)).to.throw(
      Error,
      `got "amd64,${'!'.repeat(74)}", expected all or architectures separated by commas (amd64,arm64)`,
    );
  });
});
