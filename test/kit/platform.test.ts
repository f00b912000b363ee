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
  type Row = [text: string, ofImage: string | undefined, ofNode: string | undefined, ofPeople: string | undefined];
  const same: readonly [name: string, ...texts: string[]][] = [
    ['amd64', 'amd64', 'x86_64', 'x86-64', 'X86_64'],
    ['arm64', 'aarch64', ' arm64\n'],
    ['arm', 'armhf'],
    ['386', 'i386', 'i686', '386'],
    ...['ppc64le', 'mips64le', 'wasm'].map((name): [string, string] => [name, name]),
  ];
  const none = 'unknown Unknown - arm64/v8 arm64- arm64_ amd64:NoSchedule amd64\u0000 ａｍｄ64'.split(' ');
  const rows: Row[] = [
    ...same.flatMap(([name, ...texts]) => texts.map((text): Row => [text, name, name, name])),
    // Has two meanings.
    ['x86', '386', '386', undefined],
    // Go reserves the name and has no such port.
    ['sparc64', 'sparc64', 'sparc64', undefined],
    ['riscv', 'riscv', 'riscv', undefined],
    // Unknown to Go, so an image that states it has no known platform; but a node may report an architecture of a later Go.
    ...['x64', 'armv7l', 'powerpc64le', 'newchip64'].map((text): Row => [text, undefined, text, undefined]),
    ...['', 'a'.repeat(33), ...none].map((text): Row => [text, undefined, undefined, undefined]),
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
