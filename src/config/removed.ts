import { variableName } from './keys.ts';

/**
 * Keys that an earlier version had, each with what to do now, such as `remove it: …` or `use taints.key: …`. It goes on after
 * `taints.name: this key was removed; `.
 */
export const REMOVED: ReadonlyMap<string, string> = new Map<string, string>([
  // Sorted by path.
  [
    'images.cache.file',
    'remove it: what is known of images is kept in memory only, and after a restart one request is sent for each image that is needed',
  ],
  [
    'images.lies',
    'remove it: archaware no longer learns from a crash; state the architectures of such an image in images.overrides',
  ],
]);

/** Whether a group of the file contains removed keys, so that they are named one by one. */
export function hasRemoved(group: string): boolean {
  return [...REMOVED.keys()].some((path) => path.startsWith(`${group}.`));
}

/** Returns the line for a removed key, in the form in which it was given: as a path, a flag or a variable. Undefined for any other. */
export function removedKey(given: string): string | undefined {
  for (const [path, advice] of REMOVED) {
    if ([path, `--${path}`, variableName(path)].includes(given)) return `${given}: this key was removed; ${advice}`;
  }
  return undefined;
}
