import { answerFrom, type LookupResult } from '../../analysis/lookup-results.ts';
import { accessFor } from '../../controllers/image-source.ts';
import { ImageError } from '../../oci/errors.ts';
import { loginText } from '../../oci/sentences.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { Asking } from './with-lookups.ts';

/** An image that some pods use, and what they may use to pull it. */
export type LookupQuestion = {
  readonly image: PodImage;
  readonly namespace: string;
  readonly pullSecrets: readonly string[];
};

/** Creates lookups of images, whose progress is shown: each once for everyone who may use the same secrets. */
export function createLookups(asking: Asking) {
  const { progress, signal } = asking;
  const results = new Map<string, LookupResult>();
  const running = new Map<string, Promise<void>>();

  async function work(key: string, question: LookupQuestion): Promise<void> {
    results.set(key, await lookUp(question, asking));
    running.delete(key);
    progress.show('images', results.size, results.size + running.size);
  }

  return {
    /** Starts a lookup, unless the same question was asked before. */
    ask(question: LookupQuestion): void {
      const key = keyOf(question);
      if (results.has(key) || running.has(key)) return;
      const lookup = work(key, question);
      // The caller that waits for all of them gets the error.
      lookup.catch(() => undefined);
      running.set(key, lookup);
    },
    /** Waits until everything that was asked is known or has failed. */
    async settle(): Promise<void> {
      while (running.size > 0) await Promise.all(running.values());
      signal.throwIfAborted();
    },
    answerTo: (question: LookupQuestion) => answerFrom(results.get(keyOf(question)), Number.POSITIVE_INFINITY),
  };
}

function keyOf({ image: { image, volume }, namespace, pullSecrets }: LookupQuestion): string {
  // Without secrets, everyone gets the same answer.
  const access = pullSecrets.length === 0 ? [] : [namespace, ...pullSecrets];
  return JSON.stringify([image, volume !== undefined, ...access]);
}

/** Looks an image up. A failure is a result, too. */
export async function lookUp(
  { image, namespace, pullSecrets }: LookupQuestion,
  { resolver, registryOf, signal }: Asking,
): Promise<LookupResult> {
  try {
    const access = accessFor(image, namespace, pullSecrets);
    const { digest, source, ...found } = await resolver.resolve(image.image, access, signal);
    return { ...(digest ? { digest } : {}), ...(source ? { source } : {}), ...found };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    const { code, message, endpoint, login, isSingleManifest } = error;
    const registry = endpoint ?? registryOf(image.image);
    return {
      error: { code, message, registry, ...(login === undefined ? {} : { login: loginText(login) }) },
      isSingleManifest,
    };
  }
}
