import type { Reference } from '../reference.ts';
import { type CacheOwner, EVERYBODY, type ImageCache, type ImageFacts, type TagEntry } from './cache.ts';

/** What is known of an image: the facts of its digest, and for a tag where the digest came from. */
export type Known = Pick<TagEntry, 'found'> & Partial<Pick<TagEntry, 'digest' | 'source'>>;

/** Returns the fingerprints of the pull secrets that match an image. Their holders may get more than {@link EVERYBODY}. */
type OwnersOf = () => readonly CacheOwner[];

/** What is known of images to those who may get it. */
export type Knowledge = {
  /** Returns what is known and still valid without asking a registry. `always`: with `imagePullPolicy: Always`. */
  fresh(reference: Reference, owners: OwnersOf, always: boolean): Known | undefined;
  /** Returns the last known entry of a name, however old it is. */
  last(reference: Reference, owners: OwnersOf): TagEntry | undefined;
  /** Keeps the answer of a registry that this owner may get. */
  keep(reference: Reference, owner: CacheOwner, entry: TagEntry): void;
};

export type KnowledgeOptions = {
  readonly cache: ImageCache;
  /** Milliseconds for which a tag stays valid: in general, and with `imagePullPolicy: Always` or the tag `latest`. */
  readonly ttl: { readonly tag: number; readonly always: number };
  readonly now: () => number;
};

/**
 * The factor by which a tag stays valid longer if HEAD does not work: each check then costs a GET, which may count as a
 * pull.
 */
const HEADLESS_FACTOR = 6;

/** Creates the view on a cache. */
export function createKnowledge({ cache, ttl, now }: KnowledgeOptions): Knowledge {
  /** What is known of a digest that its registry serves completely; it never expires. */
  const ofDigest = ({ digest }: Reference): ImageFacts | undefined =>
    digest === undefined ? undefined : cache.digest(digest);

  function last({ canonical }: Reference, owners: OwnersOf): TagEntry | undefined {
    let latest = cache.tag(canonical, EVERYBODY);
    for (const owner of owners()) {
      const entry = cache.tag(canonical, owner);
      if (entry !== undefined && entry.checkedAt > (latest?.checkedAt ?? Number.NEGATIVE_INFINITY)) latest = entry;
    }
    return latest;
  }

  function isFresh({ checkedAt, headless }: TagEntry, { tag }: Reference, always: boolean): boolean {
    const usual = always || tag === 'latest' ? ttl.always : ttl.tag;
    return now() - checkedAt < (headless === true ? usual * HEADLESS_FACTOR : usual);
  }

  return {
    last,
    fresh(reference, owners, always) {
      const found = ofDigest(reference);
      if (found !== undefined)
        return { found, ...(reference.digest === undefined ? {} : { digest: reference.digest }) };
      // A digest has an entry of its own if its registry does not serve all of it. Such a digest is checked again, like
      // a tag.
      const entry = last(reference, owners);
      return entry !== undefined && isFresh(entry, reference, always) ? entry : undefined;
    },
    keep(reference, owner, entry) {
      if (ofDigest(reference) === undefined) cache.setTag(reference.canonical, owner, entry);
    },
  };
}
