import { backoff } from '../kit/clock.ts';
import { createLru } from '../kit/lru.ts';
import type { Platform } from '../kit/platform.ts';
import { type Access, accessKey } from './credentials/keyring.ts';
import { ImageError } from './errors.ts';
import type { Skipped } from './manifest.ts';
import { digestName, type Reference, readReference } from './reference.ts';
import type { Runtime } from './selection.ts';

/** The platforms of a digest. They never change, and every caller that can name the digest may get them. */
export type ImageFacts = {
  readonly platforms: readonly Platform[];
  /** Empty where nobody asks for it (`namesSkipped`). */
  readonly skipped: readonly Skipped[];
  /** Whether the digest is an index (true) or a single manifest (false). */
  readonly isIndex: boolean;
  /** The only container runtime that takes all of these platforms from the index. Absent: all known ones do. */
  readonly only?: Runtime;
  /**
   * Whether its labels say that it is a bundle of the Operator Lifecycle Manager, whose files run nowhere. Absent for an index:
   * container runtimes refuse an index without the node's platform, whatever is in it.
   */
  readonly isBundle?: true;
};

/** The digest that a tag pointed to when it was last checked. */
export type TagEntry = {
  readonly digest: string;
  readonly found: ImageFacts;
  /** Milliseconds on the clock `now`. */
  readonly checkedAt: number;
  /** host[:port] of the registry that answered. */
  readonly source: string;
  /** For `If-None-Match`, if HEAD does not work there. */
  readonly etag?: string;
  /** Whether HEAD did not work when the tag was last checked. */
  readonly headless?: boolean;
  /**
   * The endpoints that `found` holds for (`Endpoint.route`), if some of them may lack manifests. Then `found` may have fewer platforms than
   * the digest.
   */
  readonly route?: string;
  /** Whether `found` has fewer platforms than the digest, because manifests are missing that may come. */
  readonly isPartial?: true;
};

/** Who may get the answer of an entry: everybody, or only holders of the credential with this fingerprint. */
export type CacheOwner = string;
export const EVERYBODY: CacheOwner = '';

/** What is known of images, in memory, limited by use. */
export type ImageCache = ReturnType<typeof createImageCache>;

/** The most bytes of the digests, and of the tags: a registry decides how long the lists of its images are. */
const MOST_DIGESTS = 24 * 1024 * 1024;
const MOST_TAGS = 12 * 1024 * 1024;

function bytesOfFacts({ platforms, skipped }: ImageFacts, digest: string): number {
  const ofSkipped = skipped.reduce((sum, entry) => sum + 64 + entry.reason.length + (entry.digest?.length ?? 0), 0);
  return 128 + digest.length + 96 * platforms.length + ofSkipped;
}

/** The facts of a tag are those of its digest, or were, unless some of its endpoints lack manifests. */
function bytesOfTag({ etag = '', source, digest, found, route, isPartial }: TagEntry, key: string): number {
  const own = route !== undefined || isPartial ? bytesOfFacts(found, digest) : 0;
  return 192 + key.length + digest.length + etag.length + source.length + own;
}

/** @param maxEntries of each kind; fewer if they take too many bytes */
export function createImageCache(maxEntries: number) {
  const limited = <T extends object>(most: number, bytesOf: (value: T, key: string) => number) =>
    createLru<T>(most, (value, key) => Math.max(Math.floor(most / maxEntries), bytesOf(value, key)));
  const digests = limited(MOST_DIGESTS, bytesOfFacts);
  const tags = limited(MOST_TAGS, bytesOfTag);
  return {
    digest: (digest: string): ImageFacts | undefined => digests.get(digest),
    setDigest: (digest: string, found: ImageFacts): void => void digests.set(digest, found),
    // A canonical name contains no space.
    tag: (canonical: string, owner: CacheOwner): TagEntry | undefined => tags.get(`${canonical} ${owner}`),
    setTag: (canonical: string, owner: CacheOwner, entry: TagEntry): void =>
      void tags.set(`${canonical} ${owner}`, entry),
  };
}

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
      const reference = readReference(image);
      if (reference instanceof ImageError) return { access, reference, canonical: image, owners: () => [] };
      let known: readonly CacheOwner[] | undefined;
      const owners = (): readonly CacheOwner[] => {
        known ??= access.pullSecrets.length === 0 ? [] : ownersOf(reference, access);
        return known;
      };
      return { access, reference, canonical: reference.canonical, owners };
    },
    /** Returns the last known entry of a name, however old it is. */
    last,
    /** Returns what is known and still valid without asking a registry. */
    fresh(question: Question): Known | undefined {
      const { reference, access } = question;
      if (reference instanceof ImageError) return undefined;
      const { digest, tag } = reference;
      const found = digest === undefined ? undefined : cache.digest(digest);
      // Of an index, the endpoints of this image may lack something.
      const holds = found !== undefined && (!found.isIndex || routeOf(reference) === undefined);
      if (digest !== undefined && holds) return { found, digest };
      // A digest has an entry of its own if its registry does not serve all of it. Such a digest is checked again, like a tag.
      const entry = last(question);
      if (entry === undefined) return undefined;
      const route = routeOf(reference);
      if (entry.found.isIndex && entry.route !== route) return undefined;
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

/** An image whose last lookup failed; times in milliseconds on the clock `now`. */
type CachedFailure = {
  readonly error: ImageError;
  /** The first failure since the last success in this process. */
  readonly firstFailedAt: number;
  /** The image is not looked up again before this time. */
  readonly retryAt: number;
  /** The tries that failed, without those after which the registry, or its failure, says when to try again. */
  readonly attempts: number;
  /** The key of the place whose first answer ends the wait. */
  readonly waitsFor: string | undefined;
  /** Whether it is so old, or so much has changed since, that the retry must end before anything is said of the image. */
  readonly isDoubtful?: true;
};

export type FailuresOptions = {
  readonly maxEntries: number;
  readonly now: () => number;
  /** From 0 to 1, excluding 1. */
  readonly random: () => number;
};

/**
 * Remembers failures and spaces the retries: after the time that the registry asks for, or its failure (lookup/health.ts); after
 * an answer about the image itself after 1 s, doubling up to 5 min, ±20 %.
 */
export type Failures = ReturnType<typeof createFailures>;

const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of a failure, without its texts: an error remembers where it was made. */
const ENTRY = 512;

const FIRST = 1000;
const LONGEST = 300_000;

/**
 * Creates the memory. If there are too many failures, or their texts take too many bytes, it forgets the oldest one of the
 * namespace that has the most. A forgotten failure starts over, and so does the time after which `images.unresolvable` applies.
 */
export function createFailures({ maxEntries, now, random }: FailuresOptions) {
  const failures = new Map<string, CachedFailure & { readonly namespace: string }>();
  /** The keys of each namespace, oldest first, and the bytes of their failures. */
  const owned = new Map<string, { readonly keys: Set<string>; bytes: number }>();
  /** By the place for which they wait. */
  const waiting = new Map<string, Set<string>>();
  let bytes = 0;

  function forget(key: string): void {
    const failure = failures.get(key);
    if (failure === undefined) return;
    const { namespace, waitsFor = '', error } = failure;
    failures.delete(key);
    waiting.get(waitsFor)?.delete(key);
    if (waiting.get(waitsFor)?.size === 0) waiting.delete(waitsFor);
    count(namespace, key, -bytesOf(key, error));
    owned.get(namespace)?.keys.delete(key);
    if (owned.get(namespace)?.keys.size === 0) owned.delete(namespace);
  }

  function count(namespace: string, key: string, more: number): void {
    const own = owned.get(namespace) ?? { keys: new Set<string>(), bytes: 0 };
    owned.set(namespace, own);
    own.keys.add(key);
    own.bytes += more;
    bytes += more;
  }

  function makeRoom(): void {
    while (failures.size > maxEntries || bytes > MOST_BYTES) {
      const most = [...owned.values()].reduce((one, other) => (other.bytes > one.bytes ? other : one));
      const [oldest] = most.keys;
      if (oldest === undefined) return;
      forget(oldest);
    }
  }

  return {
    get: (key: string): CachedFailure | undefined => failures.get(key),
    /**
     * Adds a failure. If the image was not asked for, the failure of the last request for it is kept. `ttlMs`: the least time for which a failure is remembered that does not pass by itself.
     * `namespace`: the namespace for which the image was looked up.
     */
    add(key: string, error: ImageError, ttlMs: number, namespace: string): CachedFailure {
      const before = failures.get(key);
      const { waitsFor } = error;
      const attempts = (before?.attempts ?? 0) + (error.retryAfterMs === undefined ? 1 : 0);
      // If the registry names a time, the retry comes then, with some jitter so that not all come at once. A longer wait would help nobody.
      const requested =
        error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, FIRST) + FIRST * random();
      const wait = Math.max(requested ?? backoff(attempts - 1, FIRST, LONGEST, random), error.temporary ? 0 : ttlMs);
      // What the registry answered about the image itself says more than what it answers about others.
      const isKept = error.isUnasked && before !== undefined && !before.error.isUnasked;
      const failure = {
        namespace,
        error: isKept ? before.error : error,
        firstFailedAt: before?.firstFailedAt ?? now(),
        retryAt: now() + wait,
        attempts,
        waitsFor,
      };
      forget(key);
      failures.set(key, failure);
      if (waitsFor !== undefined) waiting.set(waitsFor, (waiting.get(waitsFor) ?? new Set()).add(key));
      count(namespace, key, bytesOf(key, failure.error));
      makeRoom();
      return failure;
    },
    remove: forget,
    /** Makes a failed image due now, because what made it fail has changed. */
    forgive(key: string): void {
      const failure = failures.get(key);
      if (failure !== undefined) failures.set(key, { ...failure, retryAt: now(), isDoubtful: true });
    },
    /** Makes a failure doubtful until the next one. */
    doubt(key: string): void {
      const failure = failures.get(key);
      if (failure !== undefined) failures.set(key, { ...failure, isDoubtful: true });
    },
    keys: (): string[] => [...failures.keys()],
    /** Returns the images that wait for the first answer of a place, without those that are due: they are asked for already. */
    waitingFor: (place: string): readonly string[] =>
      [...(waiting.get(place) ?? [])].filter((key) => (failures.get(key)?.retryAt ?? 0) > now()),
    /** The number of failures that are still wanted: one that no caller asks for any more is not retried when it is due. */
    count(): number {
      const oldest = now() - LONGEST;
      return [...failures.values()].filter(({ retryAt }) => retryAt > oldest).length;
    },
  };
}

function bytesOf(key: string, { message }: ImageError): number {
  return ENTRY + 2 * key.length + message.length;
}
