import type { ImageFacts } from '../cache/cache.ts';
import { ImageError } from '../errors.ts';
import {
  type ImageConfig,
  type Index,
  type Manifest,
  parseImageConfig,
  type Skipped,
  uniquePlatforms,
} from '../manifest.ts';
import { type Child, select } from '../selection.ts';
import { nothingHeldText, nothingRunsText } from '../sentences.ts';

type Image = Extract<Manifest, { kind: 'image' }>;

/** The platforms of a digest. Not complete if the registry lacks or refuses a part of what the index names. */
export type Explored = ImageFacts & { readonly isComplete: boolean };

/** One registry, asked with one credential. Both functions check the digest of what they return. */
export type ManifestSource = {
  /** The name in messages. */
  readonly label: string;
  /** Whether what it lacks counts as missing. False for a mirror, which may not have everything yet. */
  readonly isFinal: boolean;
  /** Returns whether it has a manifest. Absent: it has all that its indexes name. */
  readonly holds?: (digest: string) => Promise<boolean>;
  /** Returns what is known of a digest without asking. */
  readonly known: (digest: string) => ImageFacts | undefined;
  /** Fetches a manifest; the result parses it (`parseManifest`). `before`: the number of entries that led to it. */
  readonly manifest: (digest: string) => Promise<(before: number) => Manifest>;
  /** Fetches the config blob of an image. */
  readonly config: (image: Image) => Promise<Uint8Array>;
  /** Whether to find out which entries of an index do not count. Default: no. */
  readonly namesSkipped?: boolean | undefined;
};

/** An entry that cannot be used. `isLasting`: the reason is a property of its digest and not of this registry. */
type Refused = { readonly refusal: ImageError; readonly isLasting: boolean };

/** The depth of indexes within indexes; the image-spec allows nesting and names no limit. */
const MAX_DEPTH = 3;
/** The most entries of an index that are read; each costs a request or two. */
const MAX_CHILDREN = 32;
/** The most entries of an index that a sparse endpoint is asked for; the largest real indexes have about 20. */
const MAX_PRESENT = 64;
/** The most skipped entries that are reported. */
const MAX_SKIPPED = 100;

/**
 * Returns the platforms of a manifest. Of an index, only entries are read whose content decides what container runtimes take.
 *
 * @throws ImageError, or what the source throws
 */
export async function explore(root: Manifest, source: ManifestSource): Promise<Explored> {
  if (root.kind === 'image') {
    const config = await configOf(root, source);
    if (config instanceof ImageError) {
      const { code, temporary, message } = config;
      throw new ImageError(message, { code, temporary, isSingleManifest: true });
    }
    const { platform, ...more } = config;
    return { platforms: [platform], skipped: [], isIndex: false, ...more, isComplete: true };
  }
  const isSparse = source.holds !== undefined;
  const children = new Map<string, Child>();
  const refusals: Refused[] = [];
  /** The platforms of entries that are not there. */
  const missing: string[] = [];
  const count = { content: 0, presence: 0 };
  let entries = root.entries.length;
  let selection = select(root, children, isSparse);
  while (selection.kind === 'needs') {
    for (const { by } of selection.children) count[by] += 1;
    if (count.content > MAX_CHILDREN) throw tooLarge(`has more than ${MAX_CHILDREN} entries that must be read`, source);
    if (count.presence > MAX_PRESENT) {
      throw tooLarge(`has more than ${MAX_PRESENT} platforms, and each must be asked for`, source);
    }
    for (const { digest, depth, by, name } of selection.children) {
      if (by === 'presence') {
        const isHeld = await source.holds?.(digest);
        if (!isHeld) missing.push(name);
        children.set(digest, isHeld ? { kind: 'held' } : { kind: 'missing', reason: notIn(source, name) });
        continue;
      }
      const child = await exploreChild(digest, source, entries);
      if ('refusal' in child) {
        refusals.push(child);
        const refused = refusedChild(child, name, source);
        if (refused.kind === 'missing') missing.push(name);
        children.set(digest, refused);
      } else {
        if (child.kind === 'index' && depth > MAX_DEPTH)
          throw tooLarge(`nests indexes deeper than ${MAX_DEPTH}`, source);
        if (child.kind === 'index') entries += child.entries.length;
        children.set(digest, child);
      }
    }
    selection = select(root, children, isSparse);
  }
  const { platforms, skipped, only } = selection;
  if (platforms.length === 0) {
    const { label: endpoint } = source;
    const refused = refusals.map(({ refusal }) => refusal);
    if (missing.length === 0) throw without(refused, skipped(), source);
    throw new ImageError(nothingHeldText(endpoint, missing), { code: 'not-found', temporary: true, endpoint });
  }
  return {
    platforms: uniquePlatforms(platforms),
    skipped: source.namesSkipped ? skipped().slice(0, MAX_SKIPPED) : [],
    isIndex: true,
    ...(only === undefined ? {} : { only }),
    isComplete: missing.length === 0 && refusals.every(({ isLasting }) => isLasting),
  };
}

function notIn({ label }: ManifestSource, name: string): string {
  return `not in ${label} (${name})`;
}

function refusedChild({ refusal }: Refused, name: string, source: ManifestSource): Child {
  const { code, message } = refusal;
  if (code !== 'not-found') return { kind: 'refused', reason: message };
  return source.holds === undefined
    ? { kind: 'refused', reason: 'not in the registry' }
    : { kind: 'missing', reason: notIn(source, name) };
}

/**
 * Finds out what an entry is. If it cannot be read, a container runtime that chooses it fails, and other entries still
 * count. A failure that may pass by itself (5xx, a deadline) does not count as such a refusal.
 */
async function exploreChild(
  digest: string,
  source: ManifestSource,
  before: number,
): Promise<Index | Extract<Child, { kind: 'image' }> | Refused> {
  // An image that was looked up by itself; of an index, each entry counts here.
  const known = source.known(digest);
  const [single] = known?.isIndex === false ? known.platforms : [];
  if (single !== undefined) return { kind: 'image', platform: single };
  try {
    const parse = await source.manifest(digest);
    const manifest = contentOf(() => parse(before));
    // A malformed one may only contradict the label that this registry gives it.
    if (manifest instanceof ImageError) return { refusal: manifest, isLasting: manifest.code === 'unsupported' };
    if (manifest.kind === 'index') return manifest;
    const config = await configOf(manifest, source);
    if (config instanceof ImageError) return { refusal: config, isLasting: true };
    return { kind: 'image', platform: config.platform };
  } catch (error) {
    if (!(error instanceof ImageError) || !['not-found', 'denied', 'unsupported'].includes(error.code)) throw error;
    // A registry may hold only a part of an index; a mirror may not have the rest yet.
    if (!source.isFinal && error.code !== 'unsupported') throw error;
    return { refusal: error, isLasting: false };
  }
}

async function configOf(image: Image, source: ManifestSource): Promise<ImageConfig | ImageError> {
  const body = await source.config(image);
  return contentOf(() => parseImageConfig(body));
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
  return new ImageError(nothingRunsText(skipped), { code: 'unsupported', endpoint: label });
}

function tooLarge(problem: string, { label }: ManifestSource): ImageError {
  return new ImageError(`the index ${problem}`, { code: 'too-large', endpoint: label });
}
