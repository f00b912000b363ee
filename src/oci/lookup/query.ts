import { createLru } from '../../kit/lru.ts';
import { type CacheOwner, EVERYBODY, type ImageCache, type ImageFacts, type TagEntry } from '../cache.ts';
import { labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import { type Credential, isSuccess } from '../http/transport.ts';
import {
  type ImageConfig,
  type Index,
  MAX_CONFIG,
  MAX_MANIFEST,
  type Manifest,
  parseImageConfig,
  uniquePlatforms,
} from '../manifest.ts';
import { digestName, isDigest, matchesDigest } from '../reference.ts';
import { type Child, type Needed, select } from '../selection.ts';
import { nothingHeldText, nothingRunsText } from '../sentences.ts';
import type { Health } from './health.ts';
import type { ImageRequests, QueriedTarget, Sent } from './request.ts';

/** The status of a server that does not support HEAD (RFC 9110, section 15.6.2); it is not an outage. */
const NOT_IMPLEMENTED = 501;
/** Milliseconds: longer than a pause after a rate limit, but limited, because the tag may be pushed again meanwhile. */
const UNFINISHED_MS = 900_000;
/** Bytes. */
const MAX_UNFINISHED = 16 * 1024 * 1024;

type Answer = {
  /** `revalidated`: the tag still points to the same digest. */
  readonly outcome: 'found' | 'revalidated';
  readonly entry: TagEntry;
};

export type QueryOptions = {
  readonly requests: ImageRequests;
  readonly cache: ImageCache;
  readonly health: Pick<Health, 'isHeadless' | 'sawHead'>;
  readonly now: () => number;
  /** Whether to find out which entries of an index do not count; only commands show that. Default: no. */
  readonly namesSkipped?: boolean;
};

/** What asking needs and remembers. */
export type QueryState = ReturnType<typeof createQuery>;

/** Creates what {@link query} asks with. */
export function createQuery(options: QueryOptions) {
  const bytesOf = ({ body }: Sent, name: string) => 1000 + body.byteLength + 2 * name.length;
  /**
   * Single-platform images whose config blob could not be had for the moment. Their manifest is kept, so that it is not
   * fetched, and perhaps counted, twice.
   */
  const unfinished = createLru<Sent>(MAX_UNFINISHED, bytesOf);
  return { ...options, unfinished };
}

/**
 * Asks one endpoint for one image, with as few requests as possible. `previous` is the digest that the tag pointed to when it was
 * last checked.
 *
 * @throws ImageError, or the signal's reason
 */
export async function query(state: QueryState, asked: QueriedTarget, previous: TagEntry | undefined): Promise<Answer> {
  const { requests, health } = state;
  const { reference, place } = asked;
  const target = reference.digest ?? reference.tag ?? 'latest';
  if (previous === undefined || reference.digest !== undefined) {
    const before = state.unfinished.get(nameOf(asked));
    const isUsable = before !== undefined && state.now() - before.at < UNFINISHED_MS;
    return found(state, isUsable ? before : await requests.manifest(asked, target), asked, previous);
  }
  let remember: (() => void) | undefined;
  if (!health.isHeadless(place)) {
    const head = await requests.ask(asked, 'HEAD', target);
    const digest = head.headers['docker-content-digest'] ?? '';
    const isOutage = head.status >= 500 && head.status !== NOT_IMPLEMENTED;
    if (head.status === 401 || head.status === 429 || isOutage) throw requests.failed(head, asked, 'the manifest');
    if (isSuccess(head) && isDigest(digest)) {
      health.sawHead(place, 'works');
      if (digest === previous.digest && stillHolds(previous, asked)) return revalidated(state, previous);
      const known = knownOf(state, digest, asked);
      if (known !== undefined) return { outcome: 'found', entry: entryOf(state, digest, known, asked) };
      return found(state, await requests.manifest(asked, digest), asked, previous);
    }
    remember = () => health.sawHead(place, isSuccess(head) ? 'broken' : 'doubtful');
  }
  // Another endpoint may use the same tag for another body.
  const isSame = previous.source === asked.endpoint.name && stillHolds(previous, asked);
  const etag = isSame ? previous.etag : undefined;
  const condition = etag === undefined ? {} : { 'if-none-match': etag };
  const response = await requests.ask(asked, 'GET', target, condition);
  const isUnchanged = response.status === 304 && etag !== undefined;
  if (!isUnchanged && !isSuccess(response)) throw requests.failed(response, asked, 'the manifest');
  // Only now: a HEAD that fails because the tag is gone says nothing about the support of HEAD.
  remember?.();
  if (isUnchanged) return revalidated(state, { ...previous, headless: true });
  return found(state, requests.verified(response, asked, undefined), asked, previous);
}

function revalidated({ now }: QueryState, previous: TagEntry): Answer {
  return { outcome: 'revalidated', entry: { ...previous, checkedAt: now() } };
}

async function found(state: QueryState, sent: Sent, asked: QueriedTarget, previous?: TagEntry): Promise<Answer> {
  const { digest, etag, at } = sent;
  const same = digest === previous?.digest && stillHolds(previous, asked) ? previous.found : undefined;
  const known = same ?? knownOf(state, digest, asked);
  const more = { checkedAt: at, ...(etag === undefined ? {} : { etag }) };
  if (known !== undefined) {
    const outcome = same === undefined ? 'found' : 'revalidated';
    return { outcome, entry: { ...entryOf(state, digest, known, asked), ...more } };
  }
  const { isComplete, ...facts } = await finish(state, sent, asked);
  // Another registry may hold the parts of an index that this one lacks, so the gap is not a property of the digest.
  if (isComplete) state.cache.setDigest(digest, facts);
  const entry = { ...entryOf(state, digest, facts, asked), ...more };
  return { outcome: 'found', entry: isComplete ? entry : { ...entry, isPartial: true } };
}

/** Whether what was found for a tag holds for the endpoints that are asked now, as long as the tag has the same digest. */
function stillHolds({ route, isPartial, found }: TagEntry, asked: QueriedTarget): boolean {
  if (!found.isIndex) return true;
  return route === asked.endpoint.route && (route === undefined || !isPartial);
}

/** Returns what is known of a digest at an endpoint without asking. */
function knownOf({ cache }: QueryState, digest: string, asked: QueriedTarget): ImageFacts | undefined {
  const facts = cache.digest(digest);
  if (!asked.endpoint.isSparse || facts?.isIndex === false) return facts;
  // The entry of a digest is that of all tags that point to it.
  const entry = cache.tag(digestName(asked.reference, digest), ownerOf(asked.credential));
  return entry !== undefined && stillHolds(entry, asked) ? entry.found : undefined;
}

async function finish(state: QueryState, sent: Sent, asked: QueriedTarget): Promise<Explored> {
  const name = nameOf(asked);
  const manifest = sent.manifest(0);
  try {
    const known = await explore(manifest, sourceOf(state, asked, sent));
    state.unfinished.delete(name);
    return known;
  } catch (error) {
    // A registry that has lost a blob may say 500, and the tag may be pushed again to mend it.
    const isForNow = error instanceof ImageError && error.temporary && error.status !== 500;
    if (isForNow && manifest.kind === 'image') state.unfinished.set(name, sent);
    else state.unfinished.delete(name);
    throw error;
  }
}

function entryOf({ now, health }: QueryState, digest: string, found: ImageFacts, asked: QueriedTarget): TagEntry {
  const { name: source, route } = asked.endpoint;
  return {
    ...{ digest, found, source },
    checkedAt: now(),
    ...(route === undefined ? {} : { route }),
    ...(health.isHeadless(asked.place) ? { headless: true } : {}),
  };
}

function sourceOf(state: QueryState, asked: QueriedTarget, root: Sent): ManifestSource {
  const { requests, cache, namesSkipped } = state;
  const { isSource, isSparse } = asked.endpoint;
  // All that is read of one image, together.
  const left = { manifests: MAX_MANIFEST - root.body.byteLength, configs: MAX_CONFIG };
  return {
    label: labelOf(asked),
    isFinal: isSource || isSparse === true,
    // What is known of a digest does not say that it is here.
    known: (digest) => (isSparse ? undefined : cache.digest(digest)),
    ...(isSparse ? { holds: (digest: string) => isServed(state, asked, digest) } : {}),
    async manifest(digest) {
      const sent = await requests.manifest(asked, digest, left.manifests);
      left.manifests -= sent.body.byteLength;
      return sent.manifest;
    },
    async config(image) {
      const body = await requests.config(asked, image.config, left.configs);
      left.configs -= body.byteLength;
      return body;
    },
    namesSkipped,
  };
}

/**
 * Finds out whether an endpoint serves a manifest, by HEAD, or by GET where HEAD does not work. Only an answer about the manifest is
 * a verdict: a time-out, a limit of requests or a broken server is an error.
 */
async function isServed({ health, requests }: QueryState, asked: QueriedTarget, digest: string): Promise<boolean> {
  if (!health.isHeadless(asked.place)) {
    const { status, headers } = await requests.ask(asked, 'HEAD', digest);
    const claimed = headers['docker-content-digest'] ?? '';
    const isOther = isDigest(claimed) && claimed !== digest;
    if (isSuccess({ status }) && !isOther) return true;
    if (status === 404 || status === 410) return false;
    // All else may be an answer to HEAD and not about the manifest; a limit or an outage is GET's as well.
  }
  const response = await requests.ask(asked, 'GET', digest);
  if (isSuccess(response)) {
    if (!matchesDigest(response.body, digest)) return false;
    health.sawHead(asked.place, 'doubtful');
    return true;
  }
  const error = requests.failed(response, asked, 'the manifest');
  if (error.temporary) throw error;
  return false;
}

/** Returns who may get the answer to a credential. */
export function ownerOf(credential: Credential | undefined): CacheOwner {
  return credential === undefined || credential.shared ? EVERYBODY : credential.fingerprint;
}

/** Returns a key for an image at an endpoint, as one credential sees it; no part contains a space. */
function nameOf({ endpoint, reference, credential }: QueriedTarget): string {
  return `${repositoryUrl(endpoint)} ${reference.canonical} ${credential?.fingerprint ?? ''}`;
}

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
