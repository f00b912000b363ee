import type { Report } from '../../analysis/readiness/report.ts';
import { accessFor } from '../../controllers/image-source.ts';
import { each } from '../../kit/fairness/each.ts';
import { ImageError } from '../../oci/errors.ts';
import { parseReference } from '../../oci/reference.ts';
import type { LookupQuestion } from '../lookups/lookups.ts';
import type { Asking } from '../lookups/with-lookups.ts';

/** How many images are asked about: those that block most. Each costs a list of tags and up to three lookups. */
const MOST_IMAGES = 100;
const AT_ONCE = 8;

/** Returns a newer tag of an image that has a build for a target; undefined if none was found. */
export type NewerOf = (image: string, target: string) => string | undefined;

/**
 * Asks the registries for newer tags of the images that block, and which of them has a build for each target. Images whose tags
 * cannot be listed are left out; `onFailed` is called for each.
 */
export async function findNewer(
  { images }: Report,
  questionOf: (image: string) => LookupQuestion | undefined,
  { resolver, progress, signal }: Asking,
  onFailed: (image: string, code: string) => void,
): Promise<NewerOf> {
  const blocking = images.filter((each) => Object.keys(each.blocking).length > 0).slice(0, MOST_IMAGES);
  const found = new Map<string, string>();
  let done = 0;

  async function search({ image, namespace, pullSecrets }: LookupQuestion, targets: readonly string[]): Promise<void> {
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

  await each(blocking, AT_ONCE, async (next) => {
    const question = questionOf(next.image);
    if (question !== undefined) {
      await search(question, Object.keys(next.blocking)).catch((error: unknown) => {
        if (!(error instanceof ImageError)) throw error;
        onFailed(question.image.image, error.code);
      });
    }
    done += 1;
    progress.show('newer tags', done, blocking.length);
  });
  return (image, target) => found.get(JSON.stringify([image, target]));
}

type Version = { readonly prefix: string; readonly numbers: readonly number[]; readonly suffix: string };

/**
 * Returns the tags that are a newer version of a tag, at most three: the newest of the same minor version, of the same major
 * version, and of all; the nearest first. Only tags of the same form count: `1.27-alpine` and `1.29-alpine`, not `1.29`. None for a
 * tag without a version.
 */
export function newerTags(tag: string, tags: readonly string[]): string[] {
  const now = readVersion(tag);
  if (now === undefined) return [];
  const newer = tags
    .flatMap((name) => {
      const version = readVersion(name);
      return version !== undefined && isAlike(version, now) && compare(version, now) > 0 ? [{ name, version }] : [];
    })
    .sort((one, other) => compare(other.version, one.version));
  const within = (count: number) =>
    newer.find(({ version }) => version.numbers.slice(0, count).every((each, index) => each === now.numbers[index]));
  return [...new Set([2, 1, 0].flatMap((count) => within(count)?.name ?? []))];
}

function readVersion(tag: string): Version | undefined {
  const [, prefix = '', numbers = '', suffix = ''] =
    /^([vV]?)([0-9]{1,15}(?:\.[0-9]{1,15}){0,3})((?:[._+-].*)?)$/.exec(tag) ?? [];
  return numbers === '' ? undefined : { prefix, numbers: numbers.split('.').map(Number), suffix };
}

function isAlike(one: Version, other: Version): boolean {
  return one.prefix === other.prefix && one.suffix === other.suffix && one.numbers.length === other.numbers.length;
}

function compare(one: Version, other: Version): number {
  const differing = one.numbers.findIndex((number, index) => number !== other.numbers[index]);
  return differing < 0 ? 0 : (one.numbers[differing] ?? 0) - (other.numbers[differing] ?? 0);
}
