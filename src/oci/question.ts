import type { CacheOwner } from './cache/cache.ts';
import type { Knowledge, Known } from './cache/knowledge.ts';
import { type Access, accessKey, type Keyring } from './credentials/keyring.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { ImageError } from './errors.ts';
import { createReferenceReader, type Reference } from './reference.ts';

/** An image, and for whom it is asked about. What follows from both is derived once. */
export type Question = {
  readonly access: Access;
  /** The error of a malformed name. */
  readonly reference: Reference | ImageError;
  /** The name under which the end of a lookup is reported; of a malformed name the text itself. */
  readonly canonical: string;
  /** Returns the fingerprints of the pull secrets that match the image, as they were last read. */
  readonly owners: () => readonly CacheOwner[];
};

/** Reads questions, and answers them from memory. */
export type Questions = {
  read(image: string, access: Access): Question;
  /** Returns what is known and still valid without asking a registry. */
  fresh(question: Question): Known | undefined;
  /** Returns what was known last, however old it is. */
  last(question: Question): Known | undefined;
};

const NOBODY = (): readonly CacheOwner[] => [];

/** Creates the reader. `endpointsOf`: returns the endpoints of an image; it is asked only for an access with pull secrets. */
export function createQuestions(
  endpointsOf: (reference: Reference) => readonly Endpoint[],
  keyring: Pick<Keyring, 'fingerprints'>,
  knowledge: Knowledge,
): Questions {
  const parse = createReferenceReader();

  function ownersOf(reference: Reference, access: Access): Question['owners'] {
    let owners: readonly CacheOwner[] | undefined;
    return () => {
      owners ??= keyring.fingerprints(
        access,
        endpointsOf(reference).map(({ credentialName }) => credentialName),
      );
      return owners;
    };
  }

  return {
    read(image, access) {
      const reference = parse(image);
      if (reference instanceof ImageError) return { access, reference, canonical: image, owners: NOBODY };
      const owners = access.pullSecrets.length === 0 ? NOBODY : ownersOf(reference, access);
      return { access, reference, canonical: reference.canonical, owners };
    },
    fresh: ({ reference, owners, access }) =>
      reference instanceof ImageError ? undefined : knowledge.fresh(reference, owners, access.always),
    last: ({ reference, owners }) => (reference instanceof ImageError ? undefined : knowledge.last(reference, owners)),
  };
}

/** Returns the key under which lookups for callers that may share answers are merged, and their failures remembered. */
export function keyOf({ canonical, access }: Question): string {
  return `${canonical} ${accessKey(access)}`;
}
