import { expect } from 'chai';
import { platformNotes } from '../../src/placement/platform-notes.ts';

describe('what people should know of platforms', () => {
  const rows: readonly [platforms: string, expected: readonly string[]][] = [
    ['linux/amd64', []],
    ['linux/amd64/v1', []],
    ['linux/amd64 linux/amd64/v3', []],
    ['linux/arm64/v8 linux/arm64/v9', []],
    ['linux/arm64/v8', []],
    ['linux/arm64', []],
    ['linux/arm/v6 linux/arm/v7', []],
    ['linux/arm/v5', []],
    ['linux/arm', []],
    ['linux/s390x/z15', []],
    ['', []],
    ['wasi/wasm', ['WebAssembly: its pods need a RuntimeClass (spec.runtimeClassName)']],
    ['wasip1/wasm wasip2/wasm', ['WebAssembly: its pods need a RuntimeClass (spec.runtimeClassName)']],
    ['wasi/wasm linux/amd64', []],
  ];
  for (const [text, expected] of rows) {
    it(`${text || 'none'}: ${expected.join(' ') || 'nothing'}`, () => {
      const platforms = text
        .split(' ')
        .filter(Boolean)
        .map((platform) => {
          const [os = '', architecture = '', variant] = platform.split('/');
          return variant === undefined ? { os, architecture } : { os, architecture, variant };
        });
      expect(platformNotes(platforms)).to.deep.equal(expected);
    });
  }
});
