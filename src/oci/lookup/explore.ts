import type { Platform } from '../../kit/platform.ts';
import type { ImageFacts } from '../cache/cache.ts';
import { ImageError } from '../errors.ts';
import { type Manifest, parseImageConfig, type Skipped, uniquePlatforms } from '../manifest.ts';

type Index = Extract<Manifest, { kind: 'index' }>;
type Image = Extract<Manifest, { kind: 'image' }>;

/** The platforms of a digest. Not complete if the registry lacks or refuses a part of what the index names. */
export type Explored = ImageFacts & { readonly isComplete: boolean };

/** One registry, asked with one credential. Both functions check the digest of what they return. */
export type ManifestSource = {
  /** The name in messages. */
  readonly label: string;
  /** False for a mirror, which may not have everything yet. */
  readonly isSource: boolean;
  /** Returns what is known of a digest without asking. */
  readonly known: (digest: string) => ImageFacts | undefined;
  /** Fetches a manifest; the result is a function that parses it. */
  readonly manifest: (digest: string) => Promise<() => Manifest>;
  /** Fetches the config blob of an image. */
  readonly config: (image: Image) => Promise<Uint8Array>;
};

/** What an entry of an index without a platform turns out to be. */
type Child =
  | { readonly platform: Platform }
  | { readonly index: Index }
  /** Why it is left out. `isLasting`: the reason is a property of its digest and not of this registry. */
  | { readonly refusal: ImageError; readonly isLasting: boolean };

/** The depth of indexes within indexes; the image-spec allows nesting and names no limit. */
const MAX_DEPTH = 3;
/** The most children of an index without a platform; each costs a request or two. */
const MAX_CHILDREN = 32;
/** The most skipped entries that are reported. */
const MAX_SKIPPED = 100;

/**
 * Returns the platforms of a manifest: its own, and those of its children without a platform.
 *
 * @throws ImageError, or what the source throws
 */
export async function explore(root: Manifest, source: ManifestSource): Promise<Explored> {
  if (root.kind === 'image') {
    const body = await source.config(root);
    const platform = contentOf(() => parseImageConfig(body));
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
 * Finds out what an entry without a platform is. If it cannot be read, it is left out as long as another entry has a
 * platform: container runtimes take that one and do not even look at others. A failure that may pass by itself (5xx, a
 * deadline) does not count as such a refusal.
 */
async function exploreChild(digest: string, source: ManifestSource): Promise<Child> {
  try {
    const manifest = contentOf(await source.manifest(digest));
    // A malformed one may only contradict the label that this registry gives it.
    if (manifest instanceof ImageError) return { refusal: manifest, isLasting: manifest.code === 'unsupported' };
    if (manifest.kind === 'index') return { index: manifest };
    const body = await source.config(manifest);
    const platform = contentOf(() => parseImageConfig(body));
    return platform instanceof ImageError ? { refusal: platform, isLasting: true } : { platform };
  } catch (error) {
    if (!(error instanceof ImageError) || !['not-found', 'denied', 'unsupported'].includes(error.code)) throw error;
    // A registry may hold only a part of an index; a mirror may not have the rest yet.
    if (!source.isSource && error.code !== 'unsupported') throw error;
    return { refusal: error, isLasting: false };
  }
}

/**
 * Parses a body whose digest is right. Returns the error if the body is wrong for ever; a limit of this program is not
 * a property of the body.
 */
function contentOf<T>(parse: () => T): T | ImageError {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ImageError && ['malformed', 'unsupported'].includes(error.code)) return error;
    throw error;
  }
}

/** Errors that another credential may solve come first, then those of the entries themselves. */
function without(refusals: readonly ImageError[], skipped: readonly Skipped[], { label }: ManifestSource): ImageError {
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

function tooLarge(problem: string, { label }: ManifestSource): ImageError {
  return new ImageError(`the index ${problem}`, { code: 'too-large', temporary: false, endpoint: label });
}
