import { expect } from 'chai';
import {
  ARCHITECTURES,
  didYouMean,
  isArchitectureName,
  normaliseArchitecture,
  readArchitecture,
  reportedArchitecture,
} from '../../src/kit/platform.ts';

describe('the name of an architecture', () => {
  const rows: [text: string, ofImage: string | undefined, ofNode: string | undefined, ofPeople: string | undefined][] =
    [
      ['amd64', 'amd64', 'amd64', 'amd64'],
      ['x86_64', 'amd64', 'amd64', 'amd64'],
      ['x86-64', 'amd64', 'amd64', 'amd64'],
      ['X86_64', 'amd64', 'amd64', 'amd64'],
      ['aarch64', 'arm64', 'arm64', 'arm64'],
      [' arm64\n', 'arm64', 'arm64', 'arm64'],
      ['armhf', 'arm', 'arm', 'arm'],
      ['i386', '386', '386', '386'],
      ['i686', '386', '386', '386'],
      ['386', '386', '386', '386'],
      ['ppc64le', 'ppc64le', 'ppc64le', 'ppc64le'],
      ['mips64le', 'mips64le', 'mips64le', 'mips64le'],
      ['wasm', 'wasm', 'wasm', 'wasm'],
      // Has two meanings.
      ['x86', '386', '386', undefined],
      // Go reserves the name and has no such port.
      ['sparc64', 'sparc64', 'sparc64', undefined],
      ['riscv', 'riscv', 'riscv', undefined],
      // Unknown to Go, so an image that states it has no known platform; but a node may report an architecture of a
      // later Go.
      ['x64', undefined, 'x64', undefined],
      ['armv7l', undefined, 'armv7l', undefined],
      ['powerpc64le', undefined, 'powerpc64le', undefined],
      ['newchip64', undefined, 'newchip64', undefined],
      ['unknown', undefined, undefined, undefined],
      ['Unknown', undefined, undefined, undefined],
      ['', undefined, undefined, undefined],
      ['-', undefined, undefined, undefined],
      ['arm64/v8', undefined, undefined, undefined],
      ['arm64-', undefined, undefined, undefined],
      ['arm64_', undefined, undefined, undefined],
      ['amd64:NoSchedule', undefined, undefined, undefined],
      ['amd64\u0000', undefined, undefined, undefined],
      ['ａｍｄ64', undefined, undefined, undefined],
      ['a'.repeat(33), undefined, undefined, undefined],
    ];
  for (const [text, ofImage, ofNode, ofPeople] of rows) {
    it(`${JSON.stringify(text)}: of an image ${ofImage}, of a node ${ofNode}, of a person ${ofPeople}`, () => {
      expect([normaliseArchitecture(text), reportedArchitecture(text), readArchitecture(text)]).to.deep.equal([
        ofImage,
        ofNode,
        ofPeople,
      ]);
    });
  }

  it('is its own spelling, and valid in a label', () => {
    for (const name of [...ARCHITECTURES, ...rows.flatMap(([, ofImage]) => ofImage ?? [])]) {
      expect(normaliseArchitecture(name)).to.equal(name);
      expect(isArchitectureName(name)).to.equal(true);
    }
  });
});

describe('a name that no node can have', () => {
  const rows: [names: readonly string[], meant: string][] = [
    [['x86'], 'amd64, or 386 for 32 bits'],
    [['x86-64', 'x86_64', 'x64', 'intel', 'Intel64', 'amd', 'AMD64', 'amd-64', 'x86-64-v3', 'adm64', 'amd46'], 'amd64'],
    [
      ['aarch64', 'aarch64_be', 'armv8', 'armv8l', 'arm64v8', 'arm64/v8', 'arm-64', 'armv9', 'graviton2', 'amr64'],
      'arm64',
    ],
    [['armv7', 'armv7l', 'armhf', 'arm/v7', 'arm32v7', 'armv6', 'armel', 'arm7'], 'arm'],
    [['i386', 'i486', 'i586', 'i686', 'ia32'], '386'],
    [['powerpc64le', 'ppc64el', 'ppc', 'ppcle'], 'ppc64le'],
    [['riscv', 'risc-v', 'riscv65', 'rv64gc'], 'riscv64'],
    [['s390', 's390z'], 's390x'],
    [['loongarch64'], 'loong64'],
  ];
  for (const [names, meant] of rows) {
    it(`for ${names.join(', ')} gets the hint ${meant}`, () => {
      expect(names.map(didYouMean)).to.deep.equal(names.map(() => `; did you mean ${meant}?`));
    });
  }

  it('gets no hint if no name is near', () => {
    expect(['foo', 'linux', '', '-', 'a', 'x'.repeat(1000)].map(didYouMean)).to.deep.equal(['', '', '', '', '', '']);
  });
});
