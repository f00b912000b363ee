import type { Clock } from '../kube/clock.ts';
import type { Access } from '../oci/credentials/keyring.ts';
import { parseReference } from '../oci/reference.ts';
import type { Resolver } from '../oci/resolver.ts';
import type { ImageAnswer } from '../placement/images.ts';
import { MOST_PULL_SECRETS, type PodImage } from '../placement/pod.ts';

/** A pull secret that is of no use; the name may stand for several. */
export type SecretProblem = { readonly name: string; readonly reason: string };

/** What a reconciliation asks of images: answers from memory, and look-ups started for what is not there. */
export type ImageSource = {
  /**
   * The answer for an image as a pod of this namespace with these pull secrets may have it. Starts a lookup if one is due;
   * `mayStart` is called just before, and may prevent that.
   */
  answer(image: PodImage, namespace: string, pullSecrets: readonly string[], mayStart?: () => boolean): ImageAnswer;
  /** The same without asking a registry. */
  recall(image: PodImage, namespace: string, pullSecrets: readonly string[]): ImageAnswer;
  /** Whether what is known of it is older than its time and could not be revalidated. */
  isStale(image: PodImage, namespace: string, pullSecrets: readonly string[]): boolean;
  /** `docker.io/library/nginx` and `docker.io/library/nginx:1.27` of an image; none where it cannot be read. */
  namesOf(image: string): readonly string[];
  /** Those of the pull secrets that the last look-ups had to pass over, and why. */
  unusableSecrets(namespace: string, pullSecrets: readonly string[]): readonly SecretProblem[];
  /** The name under which the end of a look-up is told; the text itself where it cannot be read. */
  canonicalOf(image: string): string;
};

type Names = { readonly names: readonly string[]; readonly canonical: string; readonly registry: string };

const MAX_NAMES = 20_000;

/** Creates the source over a resolver. */
export function createImageSource(
  resolver: Resolver,
  clock: Clock,
  secretProblem: (namespace: string, name: string) => string | undefined,
): ImageSource {
  const names = new Map<string, Names>();

  function read(image: string): Names {
    const known = names.get(image);
    if (known !== undefined) return known;
    const found = readNames(image);
    if (names.size >= MAX_NAMES) names.clear();
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
    // Read first: a try that falls due between the two would be neither started by us nor planned by the caller.
    const now = clock.steady();
    const known = resolver.known(image, access);
    // What is known may be old, and due to be asked about again.
    resolver.request(image, access, mayStart);
    if (known !== undefined) return { kind: 'known', ...known };
    const failure = resolver.failure(image, access);
    if (failure === undefined) return { kind: 'pending' };
    return {
      kind: 'failed',
      code: failure.error.code,
      message: failure.error.message,
      registry: failure.error.endpoint ?? read(image).registry,
      isSingleManifest: failure.error.isSingleManifest,
      sinceMs: now - failure.firstFailedAt,
      // Due: it is being asked again at this moment, and its end will be told.
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

/** On whose behalf a pod's image is looked up: with the first of its pull secrets, as far as they are read. */
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
