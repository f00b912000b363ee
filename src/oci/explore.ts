import type { Platform } from '../placement/platform.ts';
import type { Found } from './cache.ts';
import { ImageError } from './errors.ts';
import { type Manifest, parseConfig, type Skipped, uniquePlatforms } from './manifest.ts';

type Index = Extract<Manifest, { kind: 'index' }>;
type Image = Extract<Manifest, { kind: 'image' }>;

/** What a digest stands for; not complete where the registry lacks, or refuses, some of what the index names. */
export type Explored = Found & { readonly isComplete: boolean };

/** One registry, asked with one credential. Both functions check the digest of what they hand out. */
export type Source = {
  /** What it is called in messages. */
  readonly label: string;
  /** False for a mirror, which may not have everything yet. */
  readonly isSource: boolean;
  /** What is known of a digest without asking. */
  readonly known: (digest: string) => Found | undefined;
  /** The result parses it. */
  readonly manifest: (digest: string) => Promise<() => Manifest>;
  /** The config blob of an image. */
  readonly config: (image: Image) => Promise<Uint8Array>;
};

/** What an entry of an index without a platform turns out to be. */
type Child =
  | { readonly platform: Platform }
  | { readonly index: Index }
  /** Why it is left out; `isLasting`: for a reason that is a property of its digest, and not of this registry. */
  | { readonly refusal: ImageError; readonly isLasting: boolean };

/** Indexes within indexes; the image-spec allows them and names no depth. */
const MAX_DEPTH = 3;
/** Children of an index that name no platform, each of which costs a request or two. */
const MAX_CHILDREN = 32;
/** Entries that are left out, as far as they are reported. */
const MAX_SKIPPED = 100;

/**
 * The platforms of a manifest: its own, and those of what it names without a platform.
 *
 * @throws ImageError, or what the source throws
 */
export async function explore(root: Manifest, source: Source): Promise<Explored> {
  if (root.kind === 'image') {
    const body = await source.config(root);
    const platform = contentOf(() => parseConfig(body));
    if (platform instanceof ImageError) {
      const { code, temporary, message } = platform;
      throw new ImageError(message, { code, temporary, isSingleManifest: true });
    }
    return { platforms: [platform], skipped: [], isIndex: false, isComplete: true };
  }
  let isComplete = true;
  const platforms: Platform[] = [...root.platforms];
  const skipped: Skipped[] = [...root.skipped];
  const refusals: ImageError[] = [];
  const queue = root.children.map((child) => ({ child, depth: 2 }));
  const seen = new Set<string>();
  for (const { child, depth } of queue) {
    const { digest } = child;
    if (seen.has(digest)) continue;
    seen.add(digest);
    if (seen.size > MAX_CHILDREN) throw tooLarge(`names more than ${MAX_CHILDREN} images without a platform`, source);
    const known = source.known(digest);
    if (known !== undefined) {
      platforms.push(...known.platforms);
      skipped.push(...known.skipped);
      continue;
    }
    const answer = await exploreChild(digest, source);
    if ('platform' in answer) {
      platforms.push(answer.platform);
    } else if ('index' in answer) {
      if (depth > MAX_DEPTH) throw tooLarge(`nests indexes deeper than ${MAX_DEPTH}`, source);
      platforms.push(...answer.index.platforms);
      skipped.push(...answer.index.skipped);
      queue.push(...answer.index.children.map((next) => ({ child: next, depth: depth + 1 })));
    } else {
      const { refusal, isLasting } = answer;
      if (!isLasting) isComplete = false;
      refusals.push(refusal);
      skipped.push({ digest, reason: refusal.code === 'not-found' ? 'not in the registry' : refusal.message });
    }
  }
  if (platforms.length === 0) throw without(refusals, skipped, source);
  return {
    platforms: uniquePlatforms(platforms),
    skipped: skipped.slice(0, MAX_SKIPPED),
    isIndex: true,
    isComplete,
  };
}

/**
 * What an entry without a platform is. A refusal leaves it out as long as another entry has a platform: container
 * runtimes take that one and do not even look at others. What may pass by itself (5xx, a deadline) is not a verdict.
 */
async function exploreChild(digest: string, source: Source): Promise<Child> {
  try {
    const manifest = contentOf(await source.manifest(digest));
    // A malformed one may be a contradiction to how this registry labels it.
    if (manifest instanceof ImageError) return { refusal: manifest, isLasting: manifest.code === 'unsupported' };
    if (manifest.kind === 'index') return { index: manifest };
    const body = await source.config(manifest);
    const platform = contentOf(() => parseConfig(body));
    return platform instanceof ImageError ? { refusal: platform, isLasting: true } : { platform };
  } catch (error) {
    if (!(error instanceof ImageError) || !['not-found', 'denied', 'unsupported'].includes(error.code)) throw error;
    // A registry may hold a part of an index; a mirror may not have it yet.
    if (!source.isSource && error.code !== 'unsupported') throw error;
    return { refusal: error, isLasting: false };
  }
}

/** What a body holds whose digest is right, or what is wrong with it for ever; our own limits are not a property of it. */
function contentOf<T>(parse: () => T): T | ImageError {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ImageError && ['malformed', 'unsupported'].includes(error.code)) return error;
    throw error;
  }
}

/** What another credential may read comes first, then what is wrong with an entry. */
function without(refusals: readonly ImageError[], skipped: readonly Skipped[], { label }: Source): ImageError {
  for (const code of ['denied', 'malformed'] as const) {
    const refusal = refusals.find((each) => each.code === code);
    if (refusal !== undefined) return refusal;
  }
  const [first] = skipped;
  return new ImageError(
    first === undefined
      ? 'the index is empty'
      : `the index names no image that can run: ${skipped.length} left out, the first is ${first.reason}`,
    { code: 'unsupported', temporary: false, endpoint: label },
  );
}

function tooLarge(problem: string, { label }: Source): ImageError {
  return new ImageError(`the index ${problem}`, { code: 'too-large', temporary: false, endpoint: label });
}
