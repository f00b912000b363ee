import type { Access } from '../oci/credentials/keyring.ts';
import { ImageError } from '../oci/errors.ts';
import { type Reference, readReference } from '../oci/reference.ts';
import type { Resolver } from '../oci/resolver.ts';
import type { ImageAnswer } from '../placement/images.ts';
import type { SecretProblem } from '../placement/object-problems.ts';
import type { PodImage } from '../placement/objects/containers.ts';
import { MOST_PULL_SECRETS } from '../placement/objects/pod.ts';
import { NO_ROOM_AGAIN_MS } from './waiting.ts';

/** Answers the questions of reconcilers and reviews about images from memory, and starts lookups for the others. */
export type ImageSource = ReturnType<typeof createImageSource>;

/** Prevents lookups: the answer comes from memory alone. */
export const NEVER = (): boolean => false;

/** Creates an image source over a resolver. */
export function createImageSource(
  resolver: Pick<Resolver, 'look'>,
  secretProblem: (namespace: string, name: string) => string | undefined = () => undefined,
) {
  const read = (image: string): Reference | undefined => {
    const reference = readReference(image);
    return reference instanceof ImageError ? undefined : reference;
  };

  function answer(
    podImage: PodImage,
    namespace: string,
    pullSecrets: readonly string[],
    mayStart?: () => boolean,
  ): ImageAnswer {
    const { image } = podImage;
    const found = resolver.look(image, accessFor(podImage, namespace, pullSecrets), mayStart);
    if (found.kind === 'known') return found;
    // Nothing reports the end of a lookup that is not planned.
    const retry = found.isPlanned ? undefined : NO_ROOM_AGAIN_MS;
    if (found.kind === 'pending') {
      const { line } = found;
      return { kind: 'pending', ...(retry === undefined ? {} : { retryInMs: retry }), ...(line && { line }) };
    }
    const { code, message, endpoint, isSingleManifest, isUnasked } = found.error;
    return {
      kind: 'failed',
      code,
      message,
      registry: endpoint ?? read(image)?.registry ?? '',
      isSingleManifest,
      ...(isUnasked ? { isUnasked } : {}),
      sinceMs: found.sinceMs,
      retryInMs: retry ?? found.retryInMs,
    };
  }

  return {
    /** Returns the normalised names of an image (`docker.io/library/nginx`, `docker.io/library/nginx:1.27`); none for a malformed one. */
    namesOf(image: string): readonly string[] {
      const reference = read(image);
      return reference === undefined ? [] : [reference.name, reference.canonical];
    },
    /** Returns the name under which the end of a lookup is reported; for a malformed image the text itself. */
    canonicalOf: (image: string): string => read(image)?.canonical ?? image,
    /** Returns the pull secrets that the last lookups could not use, and why. */
    unusableSecrets(namespace: string, pullSecrets: readonly string[]): readonly SecretProblem[] {
      const surplus = pullSecrets[MOST_PULL_SECRETS];
      const met = pullSecrets.slice(0, MOST_PULL_SECRETS).flatMap((name) => {
        const reason = secretProblem(namespace, name);
        return reason === undefined ? [] : { name, reason };
      });
      if (surplus === undefined) return met;
      return [{ name: `${surplus} and all after it`, reason: `only the first ${MOST_PULL_SECRETS} are read` }, ...met];
    },
    /**
     * Returns what a pod of this namespace with these pull secrets may know about an image. Starts a lookup if one is due;
     * `mayStart` is called just before it and may prevent it: {@link NEVER}.
     */
    answer,
  };
}

/** Returns the access for looking up a pod's image: its namespace, and its pull secrets up to the limit. */
export function accessFor({ pullPolicy }: PodImage, namespace: string, pullSecrets: readonly string[]): Access {
  const read = pullSecrets.length > MOST_PULL_SECRETS ? pullSecrets.slice(0, MOST_PULL_SECRETS) : pullSecrets;
  return { namespace, pullSecrets: read, always: pullPolicy === 'Always' };
}
