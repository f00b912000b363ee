import { LRUCache } from 'lru-cache';
import type { Platform } from '../placement/platform.ts';
import { EVERYBODY, type Found, type ImageCache, type Owner, type TagEntry } from './cache.ts';
import { digestOf, isDigest, matchesDigest } from './digest.ts';
import { ImageError } from './errors.ts';
import {
  MANIFEST_ACCEPT,
  MAX_CONFIG,
  MAX_MANIFEST,
  type Manifest,
  parseConfig,
  parseManifest,
  type Skipped,
  uniquePlatforms,
} from './manifest.ts';
import type { Reference } from './reference.ts';
import { type Credential, type Response, type Send, statusError } from './transport.ts';

/** Indexes within indexes; the image-spec allows them and names no depth. */
const MAX_DEPTH = 3;
/** Children of an index that name no platform, each of which costs a request or two. */
const MAX_CHILDREN = 32;

export type LookupTask = {
  readonly reference: Reference;
  /** In the order to be tried; an anonymous try follows them. */
  readonly credentials: readonly Credential[];
  /** What the tag stood for when it was last looked at. */
  readonly previous?: TagEntry;
  readonly signal: AbortSignal;
};

export type LookupAnswer = {
  /** `revalidated`: the tag still stands for what it did. */
  readonly outcome: 'found' | 'revalidated';
  readonly entry: TagEntry;
  readonly owner: Owner;
};

export type LookupOptions = {
  readonly send: Send;
  readonly cache: ImageCache;
  readonly isConfigured: (host: string) => boolean;
  readonly now: () => number;
};

/** Asks a registry for one image, with as few requests as will do. */
export type Lookup = (task: LookupTask) => Promise<LookupAnswer>;

type Asked = {
  readonly reference: Reference;
  readonly credential: Credential | undefined;
  readonly signal: AbortSignal;
};

/** @throws (the returned function) ImageError, or the signal's reason */
export function createLookup(options: LookupOptions): Lookup {
  /** Endpoints whose HEAD does not name the digest. */
  const headless = new LRUCache<string, true>({ max: 10_000 });
  /** Until when a (registry, credential) is not to be asked, in milliseconds. */
  const paused = new LRUCache<string, number>({ max: 10_000 });

  return async (task) => {
    const failures: ImageError[] = [];
    for (const credential of [...task.credentials, undefined]) {
      const key = `${task.reference.registry} ${credential?.fingerprint ?? ''}`;
      const asked: Asked = { reference: task.reference, credential, signal: task.signal };
      try {
        const wait = (paused.get(key) ?? 0) - options.now();
        if (wait > 0) throw pause(task.reference.registry, wait);
        const answer = await ask(asked, task.previous);
        return { ...answer, owner: credential?.fingerprint ?? EVERYBODY };
      } catch (error) {
        if (!(error instanceof ImageError) || !['denied', 'not-found', 'rate-limited'].includes(error.code))
          throw error;
        if (error.code === 'rate-limited' && error.retryAfterMs !== undefined) {
          paused.set(key, options.now() + error.retryAfterMs);
        }
        failures.push(error);
      }
    }
    throw mostTelling(failures, task);
  };

  async function ask(asked: Asked, previous: TagEntry | undefined): Promise<Omit<LookupAnswer, 'owner'>> {
    const { reference } = asked;
    const target = reference.digest ?? reference.tag ?? 'latest';
    if (previous === undefined || reference.digest !== undefined) {
      return found(await getManifest(asked, target, reference.digest), asked, previous);
    }
    const isHeadless = headless.has(reference.endpoint);
    if (!isHeadless) {
      const head = await request(asked, 'HEAD', `manifests/${target}`, MAX_MANIFEST, {});
      const digest = head.headers['docker-content-digest'] ?? '';
      if (head.status === 401 || head.status === 429 || head.status >= 500) throw failed(head, asked, 'the manifest');
      if (isSuccess(head) && isDigest(digest)) {
        if (digest === previous.digest) return revalidated(previous);
        const known = options.cache.digest(digest);
        if (known !== undefined) return { outcome: 'found', entry: entryOf(digest, known, asked) };
        return found(await getManifest(asked, digest, digest), asked, previous);
      }
    }
    const condition = previous.etag === undefined ? {} : { 'if-none-match': previous.etag };
    const response = await request(asked, 'GET', `manifests/${target}`, MAX_MANIFEST, condition);
    const isUnchanged = response.status === 304 && previous.etag !== undefined;
    if (!isUnchanged && !isSuccess(response)) throw failed(response, asked, 'the manifest');
    // Only now: a HEAD that fails because the tag is gone says nothing about HEAD.
    headless.set(reference.endpoint, true);
    if (isUnchanged) return revalidated({ ...previous, headless: true });
    return found(verified(response, asked, undefined), asked, previous);
  }

  function revalidated(previous: TagEntry): Omit<LookupAnswer, 'owner'> {
    return { outcome: 'revalidated', entry: { ...previous, checkedAt: options.now() } };
  }

  async function found(
    answer: { digest: string; manifest: () => Manifest; response: Response },
    asked: Asked,
    previous: TagEntry | undefined,
  ): Promise<Omit<LookupAnswer, 'owner'>> {
    const etag = answer.response.headers.etag;
    const isUsable = etag !== undefined && /^(W\/)?"[\x21\x23-\x7e]{1,256}"$/.test(etag);
    const extra = isUsable ? { etag } : {};
    if (answer.digest === previous?.digest) {
      return { outcome: 'revalidated', entry: { ...entryOf(answer.digest, previous.found, asked), ...extra } };
    }
    const known = options.cache.digest(answer.digest) ?? (await explore(answer.manifest(), asked));
    options.cache.setDigest(answer.digest, known);
    return { outcome: 'found', entry: { ...entryOf(answer.digest, known, asked), ...extra } };
  }

  function entryOf(digest: string, known: Found, { reference }: Asked): TagEntry {
    const isHeadless = headless.has(reference.endpoint);
    return {
      digest,
      found: known,
      checkedAt: options.now(),
      source: reference.endpoint,
      ...(isHeadless ? { headless: true } : {}),
    };
  }

  /** The platforms of a manifest: its own, and those of what it names without a platform. */
  async function explore(root: Manifest, asked: Asked): Promise<Found> {
    if (root.kind === 'image') return { platforms: [await getConfig(asked, root)], skipped: [] };
    const platforms: Platform[] = [...root.platforms];
    const skipped: Skipped[] = [...root.skipped];
    const queue = root.children.map((child) => ({ child, depth: 2 }));
    const seen = new Set<string>();
    for (const { child, depth } of queue) {
      const { digest } = child;
      if (seen.has(digest)) continue;
      seen.add(digest);
      if (seen.size > MAX_CHILDREN) throw tooLarge(`names more than ${MAX_CHILDREN} images without a platform`, asked);
      const known = options.cache.digest(digest);
      if (known !== undefined) {
        platforms.push(...known.platforms);
        skipped.push(...known.skipped);
        continue;
      }
      try {
        const manifest = (await getManifest(asked, digest, digest)).manifest();
        if (manifest.kind === 'image') {
          platforms.push(await getConfig(asked, manifest));
          continue;
        }
        if (depth > MAX_DEPTH) throw tooLarge(`nests indexes deeper than ${MAX_DEPTH}`, asked);
        platforms.push(...manifest.platforms);
        skipped.push(...manifest.skipped);
        queue.push(...manifest.children.map((next) => ({ child: next, depth: depth + 1 })));
      } catch (error) {
        // A sparse index names what the registry does not hold; an entry that is no image is no platform either.
        if (!(error instanceof ImageError) || !['not-found', 'unsupported'].includes(error.code)) throw error;
        skipped.push({ digest, reason: error.code === 'not-found' ? 'not in the registry' : error.message });
      }
    }
    if (platforms.length > 0) return { platforms: uniquePlatforms(platforms), skipped };
    const [first] = skipped;
    throw new ImageError(
      first === undefined
        ? 'the index is empty'
        : `the index names no image that can run: ${skipped.length} left out, the first is ${first.reason}`,
      { code: 'unsupported', temporary: false, endpoint: asked.reference.registry },
    );
  }

  async function getManifest(
    asked: Asked,
    target: string,
    digest: string | undefined,
  ): Promise<{ digest: string; manifest: () => Manifest; response: Response }> {
    const response = await request(asked, 'GET', `manifests/${target}`, MAX_MANIFEST, {});
    if (!isSuccess(response)) throw failed(response, asked, 'the manifest');
    return verified(response, asked, digest);
  }

  /** The body is what it is said to be: by us where we asked for a digest, and by the registry's header. */
  function verified(
    response: Response,
    asked: Asked,
    digest: string | undefined,
  ): { digest: string; manifest: () => Manifest; response: Response } {
    const header = response.headers['docker-content-digest'] ?? '';
    const claimed = isDigest(header) ? header : undefined;
    for (const expected of [digest, claimed]) {
      if (expected !== undefined && !matchesDigest(response.body, expected)) throw mismatch(asked, 'manifest');
    }
    return {
      digest: digest ?? claimed ?? digestOf(response.body),
      manifest: () => parseManifest(response.body, response.headers['content-type']),
      response,
    };
  }

  async function getConfig(asked: Asked, { config }: Extract<Manifest, { kind: 'image' }>): Promise<Platform> {
    const response = await request(asked, 'GET', `blobs/${config.digest}`, MAX_CONFIG, {});
    if (!isSuccess(response)) throw failed(response, asked, 'the config blob');
    if (!matchesDigest(response.body, config.digest)) throw mismatch(asked, 'config blob');
    return parseConfig(response.body);
  }

  function request(
    { reference, credential, signal }: Asked,
    method: 'GET' | 'HEAD',
    path: string,
    maxBytes: number,
    headers: Record<string, string>,
  ): Promise<Response> {
    return options.send({
      method,
      url: new URL(`https://${reference.endpoint}/v2/${reference.repository}/${path}`),
      headers: path.startsWith('manifests/') ? { accept: MANIFEST_ACCEPT, ...headers } : { accept: '*/*', ...headers },
      scope: `repository:${reference.repository}:pull`,
      registry: reference.registry,
      policy: options.isConfigured(reference.endpoint) ? 'configured' : 'registry',
      ...(credential === undefined ? {} : { credential }),
      maxBytes,
      signal,
    });
  }

  function failed(response: Response, { reference }: Asked, what: string): ImageError {
    return statusError(response, reference.registry, what, options.now());
  }
}

function isSuccess({ status }: Response): boolean {
  return status >= 200 && status <= 299;
}

function mismatch({ reference }: Asked, what: string): ImageError {
  return new ImageError(`${reference.registry} sent a ${what} that is not what its digest says`, {
    code: 'malformed',
    temporary: false,
    endpoint: reference.registry,
  });
}

function tooLarge(problem: string, { reference }: Asked): ImageError {
  return new ImageError(`the index ${problem}`, {
    code: 'too-large',
    temporary: false,
    endpoint: reference.registry,
  });
}

function pause(registry: string, wait: number): ImageError {
  return new ImageError(`${registry} asked to be left alone for another ${Math.ceil(wait / 1000)} s`, {
    code: 'rate-limited',
    temporary: true,
    retryAfterMs: wait,
    endpoint: registry,
  });
}

/**
 * Of all that was tried: what may pass by itself, then what a credential could mend. Without credentials a "does not
 * exist" is the registry's word; with some of them refused it is not.
 */
function mostTelling(failures: readonly ImageError[], { reference }: LookupTask): ImageError {
  for (const code of ['rate-limited', 'denied', 'not-found'] as const) {
    const failure = failures.find((error) => error.code === code);
    if (failure !== undefined) return failure;
  }
  return new ImageError(`${reference.registry} was not asked`, { code: 'unavailable', temporary: true });
}
