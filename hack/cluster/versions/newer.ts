/** Which published versions are newer than those that the tests run on. */
import { byNewest, minorOf, type Tried } from './versions.ts';

/** A version to move to, and why. `from`: the version that the tests run on now. */
export type Newer = { readonly version: string; readonly from: string; readonly kind: 'minor' | 'patch' };

const isRelease = (version: string) => /^1[.]\d+[.]\d+$/.test(version);

/** Returns the newest release among these versions that has this minor; pre-releases do not count. */
export const newestPatch = (published: readonly string[], minor: string): string | undefined =>
  published.filter((version) => isRelease(version) && minorOf(version) === minor).sort(byNewest)[0];

/**
 * Returns the versions to move to, the next minor first, then patches of the minors that the tests run on, newest first. Only the
 * minor that follows the main line counts, so that no minor is left out. `published`: all versions, without a leading v.
 */
export function newerThan(published: readonly string[], main: Tried, older: readonly Tried[]): Newer[] {
  const next = newestPatch(published, nextMinor(main.minor));
  const patches = [main, ...older].flatMap(({ minor, patch }): Newer[] => {
    const version = newestPatch(published, minor);
    return version !== undefined && byNewest(version, patch) < 0 ? [{ version, from: patch, kind: 'patch' }] : [];
  });
  return [...(next === undefined ? [] : [{ version: next, from: main.patch, kind: 'minor' as const }]), ...patches];
}

/** Returns the pre-releases of the minor that follows the main line: they are worth a try by hand. */
export const prereleases = (published: readonly string[], main: Tried): string[] =>
  published.filter((version) => minorOf(version) === nextMinor(main.minor) && !isRelease(version));

function nextMinor(minor: string): string {
  return `1.${Number(minor.split('.')[1]) + 1}`;
}

/**
 * Returns the day on which upstream's support of a minor ends, as upstream computes it: the 28th of the month, 14 months after the
 * release. `released`: a day, or an instant as the module proxy gives it.
 */
export function computedEnd(released: string): string {
  const day = new Date(released);
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 14, 28)).toISOString().slice(0, 10);
}
