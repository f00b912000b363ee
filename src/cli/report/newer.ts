import { accessFor } from '../../controllers/images.ts';
import { ImageError } from '../../oci/errors.ts';
import { newerTags } from '../../oci/newer-tags.ts';
import { parseReference } from '../../oci/reference.ts';
import type { TagResolver } from '../../oci/resolver.ts';
import type { Report } from '../../placement/readiness/report.ts';
import type { Question } from '../lookups/lookups.ts';

/** How many images are asked about: those that block most. Each costs a list of tags and up to three lookups. */
export const MOST_IMAGES = 100;
const AT_ONCE = 8;

/** Returns a newer tag of an image that has a build for a target; undefined if none was found. */
export type NewerOf = (image: string, target: string) => string | undefined;

/**
 * Asks the registries for newer tags of the images that block, and which of them has a build for each target. Images whose tags
 * cannot be listed are left out; `onFailed` is called for each.
 */
export async function findNewer(
  { images }: Report,
  questionOf: (image: string) => Question | undefined,
  resolver: TagResolver,
  onDone: (done: number, total: number) => void,
  onFailed: (image: string, code: string) => void,
  signal: AbortSignal,
): Promise<NewerOf> {
  const blocking = images.filter((each) => Object.keys(each.blocking).length > 0).slice(0, MOST_IMAGES);
  const found = new Map<string, string>();
  const waiting = [...blocking];
  let done = 0;
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const question = questionOf(next.image);
      if (question !== undefined) {
        await search(question, Object.keys(next.blocking)).catch((error: unknown) => {
          if (!(error instanceof ImageError)) throw error;
          onFailed(question.image.image, error.code);
        });
      }
      done += 1;
      onDone(done, blocking.length);
    }
  };

  async function search({ image, namespace, pullSecrets }: Question, targets: readonly string[]): Promise<void> {
    const access = accessFor(image, namespace, pullSecrets);
    const { tag } = parseReference(image.image);
    if (tag === undefined) return;
    const base = image.image.split('@', 1)[0] ?? '';
    const repository = base.endsWith(`:${tag}`) ? base.slice(0, -tag.length - 1) : base;
    const open = new Set(targets);
    for (const newer of newerTags(tag, await resolver.tags(image.image, access, signal))) {
      if (open.size === 0) return;
      const { platforms } = await resolver.resolve(`${repository}:${newer}`, access, signal);
      for (const target of [...open].filter((each) => platforms.some(({ architecture }) => architecture === each))) {
        open.delete(target);
        found.set(JSON.stringify([image.image, target]), newer);
      }
    }
  }

  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return (image, target) => found.get(JSON.stringify([image, target]));
}
