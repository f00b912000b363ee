import { type Access, accessKey } from '../credentials/keyring.ts';
import { ImageError } from '../errors.ts';
import { createReferenceReader, digestName, type Reference } from '../reference.ts';
import { type CacheOwner, EVERYBODY, type ImageCache, type TagEntry } from './cache.ts';

/** An image and the access for which it is looked up, with what follows from both, derived once. */
export type Question = {
  readonly access: Access;
  /** The error of a malformed name. */
  readonly reference: Reference | ImageError;
  /** The name under which the end of a lookup is reported; of a malformed name the text itself. */
  readonly canonical: string;
  /** Returns the fingerprints of the pull secrets that match the image. Their holders may get more than {@link EVERYBODY}. */
  readonly owners: () => readonly CacheOwner[];
};

/** What is known of an image: the facts of its digest, and for a tag where the digest came from. */
export type Known = Pick<TagEntry, 'found'> & Partial<Pick<TagEntry, 'digest' | 'source'>>;

export type KnowledgeOptions = {
  readonly cache: ImageCache;
  /** Milliseconds for which a tag stays valid: in general, and with `imagePullPolicy: Always` or the tag `latest`. */
  readonly ttl: { readonly tag: number; readonly always: number };
  readonly now: () => number;
  /** Returns the key of an image's endpoints if some of them may lack manifests (`Endpoint.route`); default: none. */
  readonly routeOf?: (reference: Reference) => string | undefined;
};

/**
 * The factor by which a tag stays valid longer if HEAD does not work and no ETag came: each check then costs a whole GET,
 * which may count as a pull.
 */
const HEADLESS_FACTOR = 6;
const NOBODY = (): readonly CacheOwner[] => [];

/**
 * Creates the view on a cache: what each access may know of images.
 *
 * @param ownersOf returns the fingerprints of an access's pull secrets that match an image, as they were last read; called at most
 *   once for a question, and only for an access with pull secrets
 */
export function createKnowledge(
  { cache, ttl, now, routeOf = () => undefined }: KnowledgeOptions,
  ownersOf: (reference: Reference, access: Access) => readonly CacheOwner[],
) {
  const parse = createReferenceReader();

  function last({ canonical, owners, reference }: Question): TagEntry | undefined {
    let latest = cache.tag(canonical, EVERYBODY);
    for (const owner of owners()) {
      const entry = cache.tag(canonical, owner);
      if (entry !== undefined && entry.checkedAt > (latest?.checkedAt ?? Number.NEGATIVE_INFINITY)) latest = entry;
    }
    if (latest !== undefined || reference instanceof ImageError || reference.digest === undefined) return latest;
    // Found before it was known that the endpoints may lack something.
    const { digest } = reference;
    const found = cache.digest(digest);
    return found && { digest, found, checkedAt: Number.NEGATIVE_INFINITY, source: '' };
  }

  return {
    read(image: string, access: Access): Question {
      const reference = parse(image);
      if (reference instanceof ImageError) return { access, reference, canonical: image, owners: NOBODY };
      const owners = access.pullSecrets.length === 0 ? NOBODY : once(() => ownersOf(reference, access));
      return { access, reference, canonical: reference.canonical, owners };
    },
    /** Returns the last known entry of a name, however old it is. */
    last,
    /** Returns what is known and still valid without asking a registry. */
    fresh(question: Question): Known | undefined {
      const { reference, access } = question;
      if (reference instanceof ImageError) return undefined;
      const { digest, tag } = reference;
      const route = routeOf(reference);
      const found = digest === undefined ? undefined : cache.digest(digest);
      // Of an index, the endpoints of this image may lack something.
      const holds = found !== undefined && (route === undefined || !found.isIndex);
      if (digest !== undefined && holds) return { found, digest };
      // A digest has an entry of its own if its registry does not serve all of it. Such a digest is checked again, like
      // a tag.
      const entry = last(question);
      if (entry === undefined || (entry.found.isIndex && entry.route !== route)) return undefined;
      if (digest !== undefined && route !== undefined && !entry.isPartial) return entry;
      const usual = access.always || tag === 'latest' ? ttl.always : ttl.tag;
      const isWhole = entry.headless && entry.etag === undefined;
      return now() - entry.checkedAt < (isWhole ? usual * HEADLESS_FACTOR : usual) ? entry : undefined;
    },
    /** Keeps the answer of a registry that this owner may get. */
    keep(reference: Reference, owner: CacheOwner, entry: TagEntry): void {
      const { canonical, digest } = reference;
      const { route } = entry;
      if (digest === undefined || route !== undefined || cache.digest(digest) === undefined) {
        cache.setTag(canonical, owner, entry);
      }
      // For the other tags that point to it.
      if (route !== undefined && !entry.isPartial) cache.setTag(digestName(reference, entry.digest), owner, entry);
    },
  };
}

/** Returns the key under which lookups for callers that may share answers are merged, and their failures remembered. */
export function keyOf({ canonical, access }: Question): string {
  return `${canonical} ${accessKey(access)}`;
}

function once<T extends object>(read: () => T): () => T {
  let known: T | undefined;
  return () => {
    known ??= read();
    return known;
  };
}
