import { LRUCache } from 'lru-cache';
import type { Platform } from '../placement/platform.ts';
import type { Skipped } from './manifest.ts';

/** What a digest stands for; it never changes, and answers everybody who can name the digest. */
export type Found = {
  readonly platforms: readonly Platform[];
  readonly skipped: readonly Skipped[];
  /** Whether it is an index; false: a single manifest. Absent: an earlier version remembered it, and did not say. */
  readonly isIndex?: boolean;
};

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

/** What answers everybody and may therefore be written to a file; the most recently used first. */
export type SharedEntries = {
  readonly digests: readonly (readonly [digest: string, found: Found])[];
  readonly tags: readonly (readonly [canonical: string, entry: TagEntry])[];
};

/**
 * What is known of images, bounded by use. In memory; digests, and tags owned by {@link EVERYBODY}, are what may be
 * written to a file: fingerprints hold for one process.
 */
export type ImageCache = {
  digest(digest: string): Found | undefined;
  setDigest(digest: string, found: Found): void;
  tag(canonical: string, owner: Owner): TagEntry | undefined;
  setTag(canonical: string, owner: Owner, entry: TagEntry): void;
  /** What may be written to a file, as it stands now; at most so many. */
  sharedDigests(most: number): SharedEntries['digests'];
  sharedTags(most: number): SharedEntries['tags'];
  /** Adds what was read from a file where nothing is known yet, before the first look-up; nobody is told. */
  restore(entries: SharedEntries): void;
  /** Called after each change of what may be written; a mere use is none. */
  onChange(listener: () => void): void;
};

/** @param maxEntries of each kind */
export function createImageCache(maxEntries: number): ImageCache {
  const digests = new LRUCache<string, Found>({ max: maxEntries });
  const tags = new LRUCache<string, TagEntry>({ max: maxEntries });
  const listeners: (() => void)[] = [];
  // A canonical name holds no space.
  const key = (canonical: string, owner: Owner): string => `${canonical} ${owner}`;
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  return {
    digest: (digest) => digests.get(digest),
    setDigest(digest, found) {
      const isNew = digests.peek(digest) !== found;
      digests.set(digest, found);
      if (isNew) tell();
    },
    tag: (canonical, owner) => tags.get(key(canonical, owner)),
    setTag(canonical, owner, entry) {
      tags.set(key(canonical, owner), entry);
      if (owner === EVERYBODY) tell();
    },
    sharedDigests(most) {
      const found: [string, Found][] = [];
      digests.forEach((value, digest) => {
        if (found.length < most) found.push([digest, value]);
      });
      return found;
    },
    sharedTags(most) {
      const found: [string, TagEntry][] = [];
      tags.forEach((value, name) => {
        // A fingerprint follows the space of every other name.
        if (found.length < most && name.endsWith(' ')) found.push([name.slice(0, -1), value]);
      });
      return found;
    },
    restore(entries) {
      for (const [digest, found] of entries.digests.toReversed()) if (!digests.has(digest)) digests.set(digest, found);
      for (const [canonical, entry] of entries.tags.toReversed()) {
        if (!tags.has(key(canonical, EVERYBODY))) tags.set(key(canonical, EVERYBODY), entry);
      }
    },
    onChange: (listener) => void listeners.push(listener),
  };
}
