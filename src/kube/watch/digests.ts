import type { Sections } from './sections.ts';

/** Reads a change of an object. `isStatus`: nothing has changed but its status, its version and `managedFields`. */
type ReadSections<T> = (sections: Sections, before: T | undefined, isStatus: boolean) => T | undefined;

/**
 * Makes a reader of changes that knows whether an event changes only the status: it remembers a digest of the rest with each object
 * that it has read. For kinds with few objects, because a digest takes about 100 bytes. `lastRead`: the object as it is stored.
 */
export function rememberDigests<T extends object>(
  read: ReadSections<T>,
  lastRead: (sections: Sections) => T | undefined,
): (sections: Sections) => T | undefined {
  // By the object, not by its name: if another one was stored meanwhile, the digest is no longer valid.
  const digests = new WeakMap<T, string>();
  return (sections) => {
    const [before, digest] = [lastRead(sections), sections.digest()];
    const now = read(sections, before, before !== undefined && digests.get(before) === digest);
    if (now !== undefined) digests.set(now, digest);
    return now;
  };
}
