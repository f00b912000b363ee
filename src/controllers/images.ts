import type { Clock } from '../kube/clock.ts';
import type { Access } from '../oci/credentials/keyring.ts';
import { parseReference } from '../oci/reference.ts';
import type { Resolver } from '../oci/resolver.ts';
import type { ImageAnswer } from '../placement/images.ts';
import type { PodImage } from '../placement/pod.ts';

/** What a reconciliation asks of images: answers from memory, and look-ups started for what is not there. */
export type ImageSource = {
  /** The answer for an image as a pod of this namespace with these pull secrets may have it. Starts a look-up if due. */
  answer(image: PodImage, namespace: string, pullSecrets: readonly string[]): ImageAnswer;
  /** `docker.io/library/nginx` of an image; undefined where it cannot be read. */
  nameOf(image: string): string | undefined;
  /** The name under which the end of a look-up is told; the text itself where it cannot be read. */
  canonicalOf(image: string): string;
};

type Names = { readonly name: string | undefined; readonly canonical: string; readonly registry: string };

const MAX_NAMES = 20_000;

/** Creates the source over a resolver. */
export function createImageSource(resolver: Resolver, clock: Clock): ImageSource {
  const names = new Map<string, Names>();

  function read(image: string): Names {
    const known = names.get(image);
    if (known !== undefined) return known;
    const found = readNames(image);
    if (names.size >= MAX_NAMES) names.clear();
    names.set(image, found);
    return found;
  }

  return {
    nameOf: (image) => read(image).name,
    canonicalOf: (image) => read(image).canonical,
    answer({ image, pullPolicy }, namespace, pullSecrets) {
      const access: Access = { namespace, pullSecrets, always: pullPolicy === 'Always' };
      // Read first: a try that falls due between the two would be neither started by us nor planned by the caller.
      const now = clock.wall();
      const platforms = resolver.known(image, access);
      if (platforms !== undefined) return { kind: 'known', platforms };
      resolver.request(image, access);
      const failure = resolver.failure(image, access);
      if (failure === undefined) return { kind: 'pending' };
      return {
        kind: 'failed',
        code: failure.error.code,
        message: failure.error.message,
        registry: failure.error.endpoint ?? read(image).registry,
        sinceMs: now - failure.firstFailedAt,
        // Due: it is being asked again at this moment, and its end will be told.
        retryInMs: failure.retryAt > now ? failure.retryAt - now : Number.POSITIVE_INFINITY,
      };
    },
  };
}

function readNames(image: string): Names {
  try {
    const { name, canonical, registry } = parseReference(image);
    return { name, canonical, registry };
  } catch {
    return { name: undefined, canonical: image, registry: '' };
  }
}
