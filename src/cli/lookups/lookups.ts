import { accessFor } from '../../controllers/image-source.ts';
import { ImageError } from '../../oci/errors.ts';
import type { ImageAnswer } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { Asking } from './with-lookups.ts';

/** An image that some pods use, and what they may use to pull it. */
export type LookupQuestion = {
  readonly image: PodImage;
  readonly namespace: string;
  readonly pullSecrets: readonly string[];
};

/** Lookups of images: each once for everyone who may use the same secrets. */
export type Lookups = {
  /** Starts a lookup, unless the same question was asked before. */
  ask(question: LookupQuestion): void;
  /** Waits until everything that was asked is known or has failed. */
  settle(): Promise<void>;
  answerTo(question: LookupQuestion): ImageAnswer;
};

/** Creates lookups, whose progress is shown. */
export function createLookups(asking: Asking): Lookups {
  const { progress, signal } = asking;
  const answers = new Map<string, ImageAnswer>();
  const running = new Map<string, Promise<void>>();

  async function work(key: string, question: LookupQuestion): Promise<void> {
    answers.set(key, await lookUp(question, asking));
    running.delete(key);
    progress.show('images', answers.size, answers.size + running.size);
  }

  return {
    ask(question) {
      const key = keyOf(question);
      if (answers.has(key) || running.has(key)) return;
      const lookup = work(key, question);
      // The caller that waits for all of them gets the error.
      lookup.catch(() => undefined);
      running.set(key, lookup);
    },
    async settle() {
      while (running.size > 0) await Promise.all(running.values());
      signal.throwIfAborted();
    },
    answerTo: (question) => answers.get(keyOf(question)) ?? { kind: 'pending' },
  };
}

function keyOf({ image: { image, volume }, namespace, pullSecrets }: LookupQuestion): string {
  // Without secrets, everyone gets the same answer.
  const access = pullSecrets.length === 0 ? [] : [namespace, ...pullSecrets];
  return JSON.stringify([image, volume !== undefined, ...access]);
}

async function lookUp(
  { image, namespace, pullSecrets }: LookupQuestion,
  { resolver, registryOf, signal }: Asking,
): Promise<ImageAnswer> {
  try {
    const access = accessFor(image, namespace, pullSecrets);
    const { platforms, isIndex, isBundle } = await resolver.resolve(image.image, access, signal);
    return { kind: 'known', platforms, isIndex, ...(isBundle ? { isBundle } : {}) };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return {
      kind: 'failed',
      code: error.code,
      message: error.message,
      registry: error.endpoint ?? registryOf(image.image),
      sinceMs: Number.POSITIVE_INFINITY,
      retryInMs: Number.POSITIVE_INFINITY,
      isSingleManifest: error.isSingleManifest,
    };
  }
}
