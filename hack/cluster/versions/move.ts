/** What a move to another version of Kubernetes changes: pure. */
import { byNewest, minorOf, type Versions, type VersionsRecord } from './versions.ts';

/** What to move, and to what. `drop`: older minors that the tests shall no longer run on. */
export type Wish = { readonly version: string; readonly drop: readonly string[] };

/**
 * A module to write. `minor`: the one whose control plane it builds; `version`: the exact one.
 */
export type ModuleToWrite = { readonly minor: string; readonly version: string; readonly isMain: boolean };

/** What a move does. */
export type Plan = {
  readonly record: VersionsRecord;
  readonly write: readonly ModuleToWrite[];
  /** Older minors whose module is removed. */
  readonly remove: readonly string[];
};

/**
 * Plans the move. A version of a minor that the tests run on becomes its patch version; a version of the minor after the main line
 * becomes the main line, and the old main line an older minor. Throws if the version is neither, or if nothing would change.
 * `released`: the day of the first release of a new minor. `today`: as YYYY-MM-DD.
 */
export function planMove(versions: Versions, wish: Wish, released: string, today: string): Plan {
  const minor = minorOf(wish.version);
  const main = versions.minors[0];
  if (main?.patch === undefined) throw new Error('there is no main line');
  const minors = versions.minors.map(({ patch: _, ...rest }) => rest);
  const known = versions.minors.find((one) => one.minor === minor);
  const dropped = wish.drop.filter((one) => one !== main.minor);
  for (const one of dropped) {
    const isTried = versions.minors.some((each, index) => index > 0 && each.minor === one && each.patch !== undefined);
    if (!isTried || one === minor) throw new Error(`--drop ${one}: the tests run on no older Kubernetes ${one}`);
  }

  if (known !== undefined) {
    if (known.patch === undefined) throw new Error(`the tests do not run on Kubernetes ${minor}`);
    if (known.patch === wish.version) throw new Error(`the tests run on Kubernetes ${wish.version} already`);
    if (wish.drop.includes(main.minor)) throw new Error(`--drop ${main.minor}: it stays the main line`);
    const isMain = known === main;
    return {
      record: { read: versions.read, minors },
      write: [{ minor, version: wish.version, isMain }],
      remove: dropped,
    };
  }
  if (byNewest(minor, main.minor) > 0)
    throw new Error(`Kubernetes ${minor} is older than the oldest that is supported`);
  if (Number(minor.split('.')[1]) !== Number(main.minor.split('.')[1]) + 1) {
    throw new Error(`Kubernetes ${minor} is not the minor after ${main.minor}; move to each minor in its turn`);
  }
  const end = computedEnd(released);
  return {
    record: { read: today, minors: [{ minor, end, computed: true }, ...minors] },
    write: [
      { minor, version: wish.version, isMain: true },
      ...(wish.drop.includes(main.minor) ? [] : [{ minor: main.minor, version: main.patch, isMain: false }]),
    ],
    remove: dropped,
  };
}

/**
 * Returns the day on which upstream's support of a minor ends, as upstream computes it: the 28th of the month, 14 months after the
 * release. `released`: a day, or an instant as the module proxy gives it.
 */
function computedEnd(released: string): string {
  const day = new Date(released);
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 14, 28)).toISOString().slice(0, 10);
}
