import type { ImageFacts } from '../cache/cache.ts';
import { ImageError } from '../errors.ts';
import { type Index, type Manifest, parseImageConfig, type Skipped, uniquePlatforms } from '../manifest.ts';
import { type Child, select } from '../selection.ts';

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

/** An entry that cannot be used. `isLasting`: the reason is a property of its digest and not of this registry. */
type Refused = { readonly refusal: ImageError; readonly isLasting: boolean };

/** The depth of indexes within indexes; the image-spec allows nesting and names no limit. */
const MAX_DEPTH = 3;
/** The most entries of an index that are read; each costs a request or two. */
const MAX_CHILDREN = 32;
/** The most skipped entries that are reported. */
const MAX_SKIPPED = 100;

/**
 * Returns the platforms of a manifest. Of an index, only entries are read whose content decides what container runtimes take.
 *
 * @throws ImageError, or what the source throws
 */
export async function explore(root: Manifest, source: ManifestSource): Promise<Explored> {
  if (root.kind === 'image') {
    const body = await source.config(root);
    const config = contentOf(() => parseImageConfig(body));
    if (config instanceof ImageError) {
      const { code, temporary, message } = config;
      throw new ImageError(message, { code, temporary, isSingleManifest: true });
    }
    const { platform, ...more } = config;
    return { platforms: [platform], skipped: [], isIndex: false, ...more, isComplete: true };
  }
  const children = new Map<string, Child>();
  const refusals: Refused[] = [];
  let selection = select(root, children);
  while (selection.kind === 'needs') {
    const { children: needed } = selection;
    if (children.size + needed.length > MAX_CHILDREN) {
      throw tooLarge(`has more than ${MAX_CHILDREN} entries that must be read`, source);
    }
    for (const { digest, depth } of needed) {
      const child = await exploreChild(digest, source);
      if ('refusal' in child) {
        refusals.push(child);
        const { code, message } = child.refusal;
        children.set(digest, { kind: 'refused', reason: code === 'not-found' ? 'not in the registry' : message });
      } else {
        if (child.kind === 'index' && depth > MAX_DEPTH)
          throw tooLarge(`nests indexes deeper than ${MAX_DEPTH}`, source);
        children.set(digest, child);
      }
    }
    selection = select(root, children);
  }
  const { platforms, skipped, only } = selection;
  if (platforms.length === 0) {
    throw without(
      refusals.map(({ refusal }) => refusal),
      skipped,
      source,
    );
  }
  return {
    platforms: uniquePlatforms(platforms),
    skipped: skipped.slice(0, MAX_SKIPPED),
    isIndex: true,
    ...(only === undefined ? {} : { only }),
    isComplete: refusals.every(({ isLasting }) => isLasting),
  };
}

/**
 * Finds out what an entry is. If it cannot be read, a container runtime that chooses it fails, and other entries still
 * count. A failure that may pass by itself (5xx, a deadline) does not count as such a refusal.
 */
async function exploreChild(
  digest: string,
  source: ManifestSource,
): Promise<Index | Extract<Child, { kind: 'image' }> | Refused> {
  // An image that was looked up by itself; of an index, each entry counts here.
  const known = source.known(digest);
  const [single] = known?.isIndex === false ? known.platforms : [];
  if (single !== undefined) return { kind: 'image', platform: single };
  try {
    const manifest = contentOf(await source.manifest(digest));
    // A malformed one may only contradict the label that this registry gives it.
    if (manifest instanceof ImageError) return { refusal: manifest, isLasting: manifest.code === 'unsupported' };
    if (manifest.kind === 'index') return manifest;
    const body = await source.config(manifest);
    const config = contentOf(() => parseImageConfig(body));
    if (config instanceof ImageError) return { refusal: config, isLasting: true };
    return { kind: 'image', platform: config.platform };
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
