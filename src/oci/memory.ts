import { EVERYBODY, type Found, type ImageCache, type TagEntry } from './cache.ts';
import type { Access } from './credentials/keyring.ts';
import type { Reference } from './reference.ts';

/** What is known of images, as far as somebody may know it. */
export type Memory = {
  /** What is known and holds without asking. */
  fresh(reference: Reference, access: Access): { readonly found: Found; readonly entry?: TagEntry } | undefined;
  /** The last that is known of a name, however long ago it was. */
  last(reference: Reference, owners: readonly string[], access: Pick<Access, 'isVolume'>): TagEntry | undefined;
};

export type MemoryOptions = {
  readonly cache: ImageCache;
  /** Milliseconds for which a tag holds: in general, and with `imagePullPolicy: Always` or as `latest`. */
  readonly ttl: { readonly tag: number; readonly always: number };
  /** The fingerprints of the pull secrets of an access that match an image. */
  readonly ownersOf: (reference: Reference, access: Access) => readonly string[];
  readonly now: () => number;
};

/** How much longer a tag holds where HEAD is of no use, and every revalidation costs a GET that may be counted. */
const HEADLESS_FACTOR = 6;

/** Whether it says what an access asks for: what an earlier version remembered may not say whether it is an index. */
function answers({ isIndex }: Found, { isVolume }: Pick<Access, 'isVolume'>): boolean {
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
      // A digest has an entry of its own where one registry does not hand out all of it: that is asked again, as a tag is.
      const entry = last(reference, ownersOf(reference, access), access);
      return entry !== undefined && isFresh(entry, reference, access) ? { found: entry.found, entry } : undefined;
    },
  };
}
