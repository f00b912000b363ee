import type { ImageFacts } from '../cache/cache.ts';
import { ImageError } from '../errors.ts';
import { type ImageConfig, type Index, type Manifest, parseImageConfig, uniquePlatforms } from '../manifest.ts';
import { type Child, type Needed, select } from '../selection.ts';
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
  const { label: endpoint } = source;
  const isSparse = source.holds !== undefined;
  const children = new Map<string, Child>();
  const refusals: Refused[] = [];
  /** The platforms of entries that are not there. */
  const missing: string[] = [];
  const count = { content: 0, presence: 0 };
  let entries = root.entries.length;
  const tooLarge = (problem: string): ImageError =>
    new ImageError(`the index ${problem}`, { code: 'too-large', endpoint });

  /** Returns what is known of an entry that a sparse endpoint does not have. */
  const absent = (name: string): Child => {
    missing.push(name);
    return { kind: 'missing', reason: `not in ${endpoint} (${name})` };
  };
  const readChild = async ({ digest, depth, by, name }: Needed): Promise<Child> => {
    if (by === 'presence') return (await source.holds?.(digest)) ? { kind: 'held' } : absent(name);
    const child = await exploreChild(digest, source, entries);
    if ('refusal' in child) {
      refusals.push(child);
      const isAbsent = child.refusal.code === 'not-found';
      if (isAbsent && isSparse) return absent(name);
      return { kind: 'refused', reason: isAbsent ? 'not in the registry' : child.refusal.message };
    }
    if (child.kind === 'index') {
      if (depth > MAX_DEPTH) throw tooLarge(`nests indexes deeper than ${MAX_DEPTH}`);
      entries += child.entries.length;
    }
    return child;
  };

  let selection = select(root, children, isSparse);
  while (selection.kind === 'needs') {
    for (const { by } of selection.children) count[by] += 1;
    if (count.content > MAX_CHILDREN) throw tooLarge(`has more than ${MAX_CHILDREN} entries that must be read`);
    if (count.presence > MAX_PRESENT)
      throw tooLarge(`has more than ${MAX_PRESENT} platforms, and each must be asked for`);
    for (const needed of selection.children) children.set(needed.digest, await readChild(needed));
    selection = select(root, children, isSparse);
  }
  const { platforms, skipped, only } = selection;
  if (platforms.length === 0 && missing.length > 0)
    throw new ImageError(nothingHeldText(endpoint, missing), { code: 'not-found', temporary: true, endpoint });
  if (platforms.length === 0) {
    // Errors that another credential may solve come first, then those of the entries themselves.
    const [refusal] = ['denied', 'malformed'].flatMap((code) => refusals.filter((each) => each.refusal.code === code));
    throw refusal?.refusal ?? new ImageError(nothingRunsText(skipped()), { code: 'unsupported', endpoint });
  }
  return {
    platforms: uniquePlatforms(platforms),
    skipped: source.namesSkipped ? skipped().slice(0, MAX_SKIPPED) : [],
    isIndex: true,
    ...(only === undefined ? {} : { only }),
    isComplete: missing.length === 0 && refusals.every(({ isLasting }) => isLasting),
  };
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
