import { LRUCache } from 'lru-cache';
import type { Clock } from '../kit/clock.ts';
import type { Access } from '../oci/credentials/keyring.ts';
import { parseReference } from '../oci/reference.ts';
import type { Resolver } from '../oci/resolver.ts';
import type { ImageAnswer } from '../placement/images.ts';
import type { PodImage } from '../placement/objects/image.ts';
import { MOST_PULL_SECRETS } from '../placement/objects/pod.ts';
import { NO_ROOM_AGAIN_MS } from './waiting.ts';

/** A pull secret that cannot be used. The name may describe several (`x and all after it`). */
export type SecretProblem = { readonly name: string; readonly reason: string };

/** Answers the questions of reconcilers and reviews about images from memory, and starts lookups for the others. */
export type ImageSource = {
  /**
   * Returns what a pod of this namespace with these pull secrets may know about an image. Starts a lookup if one is due;
   * `mayStart` is called just before it and may prevent it.
   */
  answer(image: PodImage, namespace: string, pullSecrets: readonly string[], mayStart?: () => boolean): ImageAnswer;
  /** Returns the same, but never starts a lookup. */
  recall(image: PodImage, namespace: string, pullSecrets: readonly string[]): ImageAnswer;
  /** Whether the knowledge of an image has expired and could not be revalidated. */
  isStale(image: PodImage, namespace: string, pullSecrets: readonly string[]): boolean;
  /**
   * Returns the normalised names of an image (`docker.io/library/nginx`, `docker.io/library/nginx:1.27`); none for a malformed one.
   */
  namesOf(image: string): readonly string[];
  /** Returns the pull secrets that the last lookups could not use, and why. */
  unusableSecrets(namespace: string, pullSecrets: readonly string[]): readonly SecretProblem[];
  /** Returns the name under which the end of a lookup is reported; for a malformed image the text itself. */
  canonicalOf(image: string): string;
};

type Names = { readonly names: readonly string[]; readonly canonical: string; readonly registry: string };

/** The most bytes of the names that are remembered. The names of one image take its length several times. */
const MOST_NAMES = 4 * 1024 * 1024;
const ENTRY = 256;

/** Creates an image source over a resolver. */
export function createImageSource(
  resolver: Resolver,
  clock: Clock,
  secretProblem: (namespace: string, name: string) => string | undefined,
): ImageSource {
  const names = new LRUCache<string, Names>({
    maxSize: MOST_NAMES,
    sizeCalculation: (_, image) => ENTRY + 4 * image.length,
  });

  function read(image: string): Names {
    const known = names.get(image);
    if (known !== undefined) return known;
    const found = readNames(image);
    names.set(image, found);
    return found;
  }

  function answer(
    podImage: PodImage,
    namespace: string,
    pullSecrets: readonly string[],
    mayStart?: () => boolean,
  ): ImageAnswer {
    const { image } = podImage;
    const access = accessFor(podImage, namespace, pullSecrets);
    // The time is read first. Otherwise a retry that becomes due in between would be neither started here nor planned by the
    // caller.
    const now = clock.steady();
    const known = resolver.known(image, access);
    // Knowledge may have expired, so a known image may be due for a lookup too.
    const isAsked = known === undefined || known.isStale ? resolver.request(image, access, mayStart) : true;
    if (known !== undefined) {
      const { platforms, isIndex } = known;
      return isIndex === undefined ? { kind: 'known', platforms } : { kind: 'known', platforms, isIndex };
    }
    const failure = resolver.failure(image, access);
    if (failure === undefined) return isAsked ? { kind: 'pending' } : { kind: 'pending', retryInMs: NO_ROOM_AGAIN_MS };
    return {
      kind: 'failed',
      code: failure.error.code,
      message: failure.error.message,
      registry: failure.error.endpoint ?? read(image).registry,
      isSingleManifest: failure.error.isSingleManifest,
      ...(failure.error.isUnasked ? { isUnasked: true } : {}),
      sinceMs: now - failure.firstFailedAt,
      // A retry that is due has just been started, and its end will be reported.
      retryInMs: failure.retryAt > now ? failure.retryAt - now : Number.POSITIVE_INFINITY,
    };
  }

  return {
    namesOf: (image) => read(image).names,
    canonicalOf: (image) => read(image).canonical,
    unusableSecrets(namespace, pullSecrets) {
      const surplus = pullSecrets[MOST_PULL_SECRETS];
      const met = pullSecrets.slice(0, MOST_PULL_SECRETS).flatMap((name) => {
        const reason = secretProblem(namespace, name);
        return reason === undefined ? [] : { name, reason };
      });
      if (surplus === undefined) return met;
      return [{ name: `${surplus} and all after it`, reason: `only the first ${MOST_PULL_SECRETS} are read` }, ...met];
    },
    isStale: (image, namespace, pullSecrets) => resolver.isStale(image.image, accessFor(image, namespace, pullSecrets)),
    answer,
    recall: (image, namespace, pullSecrets) => answer(image, namespace, pullSecrets, () => false),
  };
}

/** Returns the access for looking up a pod's image: its namespace, and its pull secrets up to the limit. */
export function accessFor({ pullPolicy, volume }: PodImage, namespace: string, pullSecrets: readonly string[]): Access {
  const read = pullSecrets.length > MOST_PULL_SECRETS ? pullSecrets.slice(0, MOST_PULL_SECRETS) : pullSecrets;
  const isVolume = volume === undefined ? {} : { isVolume: true as const };
  return { namespace, pullSecrets: read, always: pullPolicy === 'Always', ...isVolume };
}

function readNames(image: string): Names {
  try {
    const { name, canonical, registry } = parseReference(image);
    return { names: [name, canonical], canonical, registry };
  } catch {
    return { names: [], canonical: image, registry: '' };
  }
}
