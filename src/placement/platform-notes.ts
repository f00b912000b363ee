import { isWebAssembly, type Platform } from './platform.ts';

/** What people should know of an image's platforms: that it needs a RuntimeClass. */
export function platformNotes(platforms: readonly Platform[]): string[] {
  if (isWebAssembly(platforms.map(({ architecture }) => architecture))) {
    return ['WebAssembly: its pods need a RuntimeClass (spec.runtimeClassName)'];
  }
  return [];
}
