import { expect } from 'chai';
import { platformNotes } from '../../../src/analysis/explain/platform-notes.ts';

describe('what people should know of platforms', () => {
  const rows: readonly [platforms: string, expected: readonly string[]][] = [
    ['linux/amd64/v3', ['only for amd64/v3: nodes need that CPU level']],
    ['linux/amd64/V4', ['only for amd64/V4: nodes need that CPU level']],
    ['linux/amd64/v2 linux/amd64/v3', ['only for amd64/v2, amd64/v3: nodes need one of these CPU levels']],
    ['linux/amd64/v9', ['only for amd64/v9: nodes need that CPU level']],
    ['linux/amd64/v3 linux/amd64/v3', ['only for amd64/v3: nodes need that CPU level']],
    ['linux/arm/v7', ['only for arm/v7: nodes need that CPU level']],
    ['linux/arm64/v9', ['only for arm64/v9: nodes need that CPU level']],
    ['linux/ppc64le/power10', ['only for ppc64le/power10: nodes need that CPU level']],
    // No hint is needed if there is also a build for every CPU.
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
    ['wasi/wasm linux/amd64/v3', ['only for amd64/v3: nodes need that CPU level']],
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
