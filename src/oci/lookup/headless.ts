import { createLru } from '../../kit/lru.ts';
import type { Place } from './place.ts';

/** Milliseconds for which HEAD is not tried again where it did not work, because the registry may support it by then. */
const HEADLESS_MS = 6 * 3_600_000;

/** Where HEAD of a manifest does not work. */
export type Headless = {
  holdsFor(place: Place): boolean;
  /**
   * `isCertain`: HEAD was answered without a digest. If it only failed although GET did not, that may be the work of a user who
   * pushes and deletes a tag there, so it never counts for the project.
   */
  remember(place: Place, isCertain: boolean): void;
  /** Records that HEAD works there. */
  forget(place: Place): void;
};

/** Remembers where HEAD of a manifest does not work: in repositories, and in projects of which two repositories showed it. */
export function createHeadless(now: () => number): Headless {
  const spread = createSpread(now);
  return {
    holdsFor: ({ repository, project }) => spread.first(repository.key) > 0 || spread.whole(project.key) > 0,
    remember({ repository, project }, isCertain) {
      spread.add(isCertain ? [repository.key, project.key] : [repository.key], now() + HEADLESS_MS);
    },
    forget: ({ repository, project }) => spread.remove([repository.key, project.key]),
  };
}

/**
 * Remembers for some time what was met at single repositories, and how far it has spread: a project counts as long as
 * it is remembered for two of its repositories, and a host as long as it is for two of its projects. So one part alone
 * never counts for the whole.
 */
type Spread = {
  /** Remembers it until this time. `path`: the keys of the repository and of all that is wider, the narrowest first. */
  add(path: readonly string[], until: number): void;
  /** Returns the time until which it is remembered for a repository, or for any part of something wider; else 0. */
  first(key: string): number;
  /** Returns the time until which something wider counts; 0 if it does not. */
  whole(key: string): number;
  /** Forgets it for the repository and for all that is wider, because it has just proved to be otherwise. */
  remove(path: readonly string[]): void;
};

/** The parts of something, and until when each has it: the two that have it longest. */
type Entry = readonly { readonly part: string; readonly until: number }[];

const PARTS = 2;
/** Authors of pods choose the names. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 300;

export function createSpread(now: () => number): Spread {
  const entries = createLru<Entry>(MAX_BYTES, (entry, key) =>
    entry.reduce((sum, { part }) => sum + 2 * part.length, ENTRY_BYTES + 2 * key.length),
  );

  function ends(key: string, index: number): number {
    const until = entries.get(key)?.[index]?.until ?? 0;
    return until > now() ? until : 0;
  }

  return {
    add(path, until) {
      for (const [index, key] of path.entries()) {
        const part = path[index - 1] ?? key;
        const others = (entries.get(key) ?? []).filter((each) => each.part !== part);
        const all = [...others, { part, until }].sort((one, other) => other.until - one.until);
        entries.set(key, all.slice(0, PARTS));
      }
    },
    first: (key) => ends(key, 0),
    whole: (key) => ends(key, PARTS - 1),
    remove(path) {
      for (const key of path) entries.delete(key);
    },
  };
}
