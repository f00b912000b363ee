import { createLru } from '../../kit/lru.ts';
import type { Platform } from '../../kit/platform.ts';
import type { Skipped } from '../manifest.ts';
import type { Runtime } from '../selection.ts';

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

/** The facts of a tag are those of its digest, or were. */
function bytesOfTag({ etag = '', source, digest, ...entry }: TagEntry, key: string): number {
  const own = hasOwnFacts(entry) ? bytesOfFacts(entry.found, digest) : 0;
  return 192 + key.length + digest.length + etag.length + source.length + own;
}

/** Whether the facts of a tag may be others than those of its digest. */
function hasOwnFacts({ route, isPartial }: Pick<TagEntry, 'route' | 'isPartial'>): boolean {
  return route !== undefined || isPartial === true;
}

/** @param maxEntries of each kind; fewer if they take too many bytes */
export function createImageCache(maxEntries: number) {
  const limited = <T extends object>(most: number, bytesOf: (value: T, key: string) => number) =>
    createLru<T>(most, (value, key) => Math.max(Math.floor(most / maxEntries), bytesOf(value, key)));
  const digests = limited(MOST_DIGESTS, bytesOfFacts);
  const tags = limited(MOST_TAGS, bytesOfTag);
  // A canonical name contains no space.
  const key = (canonical: string, owner: CacheOwner): string => `${canonical} ${owner}`;
  return {
    digest: (digest: string): ImageFacts | undefined => digests.get(digest),
    setDigest: (digest: string, found: ImageFacts): void => void digests.set(digest, found),
    tag: (canonical: string, owner: CacheOwner): TagEntry | undefined => tags.get(key(canonical, owner)),
    setTag: (canonical: string, owner: CacheOwner, entry: TagEntry): void =>
      void tags.set(key(canonical, owner), entry),
  };
}
