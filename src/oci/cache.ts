import { LRUCache } from 'lru-cache';
import type { Platform } from '../placement/platform.ts';
import type { Skipped } from './manifest.ts';

/** What a digest stands for; it never changes, and answers everybody who can name the digest. */
export type Found = { readonly platforms: readonly Platform[]; readonly skipped: readonly Skipped[] };

/** What a tag stood for when it was last looked at. */
export type TagEntry = {
  readonly digest: string;
  readonly found: Found;
  /** Milliseconds, as of `now`. */
  readonly checkedAt: number;
  /** host[:port] that answered. */
  readonly source: string;
  /** For `If-None-Match`, where HEAD is of no use there. */
  readonly etag?: string;
  /** HEAD was of no use when this was asked. */
  readonly headless?: boolean;
};

/** Who may be answered from an entry: everybody, or holders of the credential with this fingerprint. */
export type Owner = string;
export const EVERYBODY: Owner = '';

/**
 * What is known of images, bounded by use. In memory; digests, and tags owned by {@link EVERYBODY}, are what may be
 * written to a file: fingerprints hold for one process.
 */
export type ImageCache = {
  digest(digest: string): Found | undefined;
  setDigest(digest: string, found: Found): void;
  tag(canonical: string, owner: Owner): TagEntry | undefined;
  setTag(canonical: string, owner: Owner, entry: TagEntry): void;
};

/** @param maxEntries of each kind */
export function createImageCache(maxEntries: number): ImageCache {
  const digests = new LRUCache<string, Found>({ max: maxEntries });
  const tags = new LRUCache<string, TagEntry>({ max: maxEntries });
  // A canonical name holds no space.
  const key = (canonical: string, owner: Owner): string => `${canonical} ${owner}`;
  return {
    digest: (digest) => digests.get(digest),
    setDigest: (digest, found) => void digests.set(digest, found),
    tag: (canonical, owner) => tags.get(key(canonical, owner)),
    setTag: (canonical, owner, entry) => void tags.set(key(canonical, owner), entry),
  };
}
