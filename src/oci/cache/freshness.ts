import type { Access } from '../credentials/keyring.ts';
import type { Reference } from '../reference.ts';
import { EVERYBODY, type ImageCache, type ImageFacts, type TagEntry } from './cache.ts';

/** What a given access may know of images. */
export type Memory = {
  /** Returns what is known and still valid without asking a registry. */
  fresh(reference: Reference, access: Access): { readonly found: ImageFacts; readonly entry?: TagEntry } | undefined;
  /** Returns the last known entry of a name, however old it is. */
  last(reference: Reference, owners: readonly string[], access: Pick<Access, 'isVolume'>): TagEntry | undefined;
};

export type MemoryOptions = {
  readonly cache: ImageCache;
  /** Milliseconds for which a tag stays valid: in general, and with `imagePullPolicy: Always` or the tag `latest`. */
  readonly ttl: { readonly tag: number; readonly always: number };
  /** Returns the fingerprints of the access's pull secrets that match an image. */
  readonly ownersOf: (reference: Reference, access: Access) => readonly string[];
  readonly now: () => number;
};

/**
 * The factor by which a tag stays valid longer if HEAD does not work: each check then costs a GET, which may count as a
 * pull.
 */
const HEADLESS_FACTOR = 6;

/** Whether the facts answer what an access needs: an entry of an earlier version may not say whether it is an index. */
function answers({ isIndex }: ImageFacts, { isVolume }: Pick<Access, 'isVolume'>): boolean {
  return isVolume !== true || isIndex !== undefined;
}

export function createMemory({ cache, ttl, ownersOf, now }: MemoryOptions): Memory {
  function last(reference: Reference, owners: readonly string[], access: Pick<Access, 'isVolume'>) {
    return [EVERYBODY, ...owners]
      .flatMap((owner) => cache.tag(reference.canonical, owner) ?? [])
      .filter(({ found }) => answers(found, access))
      .sort((a, b) => b.checkedAt - a.checkedAt)[0];
  }

  function isFresh({ checkedAt, headless }: TagEntry, { tag }: Reference, { always }: Access): boolean {
    const usual = always || tag === 'latest' ? ttl.always : ttl.tag;
    return now() - checkedAt < (headless === true ? usual * HEADLESS_FACTOR : usual);
  }

  return {
    last,
    fresh(reference, access) {
      const found = reference.digest === undefined ? undefined : cache.digest(reference.digest);
      if (found !== undefined && answers(found, access)) return { found };
      // A digest has an entry of its own if its registry does not serve all of it. Such a digest is checked again, like
      // a tag.
      const entry = last(reference, ownersOf(reference, access), access);
      return entry !== undefined && isFresh(entry, reference, access) ? { found: entry.found, entry } : undefined;
    },
  };
}
