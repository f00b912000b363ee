import { isWebAssembly, type Platform } from '../../kit/platform.ts';

/**
 * The variants of an architecture that every CPU with Linux and a kubelet runs. Other variants need CPUs of a level (GOAMD64, GOARM,
 * GOARM64, GOPPC64, GORISCV64): an image with nothing else crashes on lower ones. That is said, and decides nothing.
 */
const BASELINES: Readonly<Record<string, readonly string[]>> = {
  amd64: ['v1'],
  arm: ['v5', 'v6'],
  arm64: ['v8', 'v8.0'],
  ppc64le: ['power8'],
  riscv64: ['rva20u64'],
};

/** Returns the hint that one container runtime may refuse an image, where only the other one takes its index. */
export function runtimeNotes(only: 'containerd' | 'CRI-O' | undefined): string[] {
  if (only === undefined) return [];
  const other = only === 'containerd' ? 'CRI-O' : 'containerd';
  return [
    `only ${only} takes all of these platforms from the index: nodes with ${other} may not be able to pull the image`,
  ];
}

/** Returns hints about an image's platforms: that it needs a RuntimeClass, or CPUs of a level. */
export function platformNotes(platforms: readonly Platform[]): string[] {
  if (isWebAssembly(platforms.map(({ architecture }) => architecture))) {
    return ['WebAssembly: its pods need a RuntimeClass (spec.runtimeClassName)'];
  }
  return Object.entries(BASELINES).flatMap(([architecture, baseline]) => {
    const builds = platforms.filter((platform) => platform.architecture === architecture);
    const isForAll = builds.some(({ variant }) => variant === undefined || baseline.includes(variant));
    const levels = [...new Set(builds.map(({ variant }) => `${architecture}/${variant}`))];
    if (isForAll || levels.length === 0) return [];
    const need = `nodes need ${levels.length === 1 ? 'that CPU level' : 'one of these CPU levels'}`;
    return `only for ${levels.join(', ')}: ${need}`;
  });
}
