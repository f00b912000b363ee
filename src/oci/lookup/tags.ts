import { untilAborted } from '../../kit/abort.ts';
import { createAskers } from '../../kit/fairness/askers.ts';
import { parseObject } from '../../kit/json.ts';
import type { Access, Keyring } from '../credentials/keyring.ts';
import { type Endpoint, type EndpointTarget, labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import { type Credential, isSuccess, type RegistryResponse, type SendRequest, statusError } from '../http/transport.ts';
import type { Reference } from '../reference.ts';
import type { LookupOptions } from './lookup.ts';
import { targetOf } from './place.ts';
import { requestFor } from './request.ts';

/** The most tags of one page, and the most pages: a repository may have millions of tags. */
const PAGE = 1_000;
const MOST_PAGES = 5;
const MAX_BYTES = 512 * 1024;
/** Characters of a `Link` header that are read. */
const MAX_LINK = 8192;
/** Distribution specification, "Pulling manifests". */
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

type TagListerOptions = Pick<LookupOptions, 'limiter' | 'isPrivate' | 'send' | 'now'> & {
  readonly keyring: Pick<Keyring, 'open'>;
  readonly endpointsOf: (reference: Reference) => readonly Endpoint[];
};

/**
 * Lists the tags of an image's repository. At most as many requests are in flight at a host as lookups may be.
 *
 * @throws ImageError, or the signal's reason
 */
export type ListTags = (reference: Reference, access: Access, signal: AbortSignal) => Promise<readonly string[]>;

export function createTagLister(options: TagListerOptions): ListTags {
  const { keyring, limiter, send, now } = options;
  return async (reference, access, signal) => {
    // A mirror may know only the tags that somebody has pulled through it, so the source comes first.
    const endpoints = options.endpointsOf(reference).filter((endpoint) => endpoint.resolvesTags);
    const endpoint = endpoints.find(({ isSource }) => isSource) ?? endpoints[0];
    if (endpoint === undefined) return [];
    const keys = await untilAborted(keyring.open(access, signal), signal);
    const isPrivate = options.isPrivate(reference.name) || options.isPrivate(endpoint.credentialName);
    const askers = createAskers(access.namespace);
    const own = await keys.candidates(endpoint.credentialName, signal, askers);
    const target = targetOf(endpoint, reference);
    const credentials = isPrivate ? own : [...own, undefined];
    return limiter.run(target.place, askers, signal, () =>
      listTags({ ...target, credentials, isPrivate, signal }, send, now),
    );
  };
}

export type TagsTask = EndpointTarget & {
  /** In the order in which they are tried. */
  readonly credentials: readonly (Credential | undefined)[];
  readonly isPrivate: boolean;
  readonly signal: AbortSignal;
};

/**
 * Lists the tags of an image's repository at one endpoint (distribution specification, end-8), at most 5,000 of them.
 *
 * @throws ImageError, or the signal's reason
 */
export async function listTags(task: TagsTask, send: SendRequest, now: () => number): Promise<string[]> {
  let refused: ImageError | undefined;
  for (const credential of task.credentials) {
    try {
      return await listWith(credential, task, send, now);
    } catch (error) {
      if (!(error instanceof ImageError) || !['denied', 'not-found'].includes(error.code)) throw error;
      refused ??= error;
    }
  }
  throw refused ?? failure(task, 'denied', 'allows no anonymous request for its tags');
}

async function listWith(
  credential: Credential | undefined,
  task: TagsTask,
  send: SendRequest,
  now: () => number,
): Promise<string[]> {
  const tags: string[] = [];
  const headers = { accept: 'application/json' };
  let last = '';
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const request = requestFor({ ...task, credential }, 'tags/list', { method: 'GET', headers, maxBytes: MAX_BYTES });
    request.url.searchParams.set('n', String(PAGE));
    if (last !== '') request.url.searchParams.set('last', last);
    const response = await send(request);
    if (!isSuccess(response)) throw statusError(response, labelOf(task), 'the tags', now());
    tags.push(...readTags(response, task));
    const next = nextOf(response);
    if (next === undefined || next === last) break;
    last = next;
  }
  return tags;
}

function readTags({ body }: RegistryResponse, task: TagsTask): string[] {
  const { tags } = parseObject(body) ?? {};
  // A repository without tags may say null.
  if (tags === null) return [];
  if (!Array.isArray(tags)) throw failure(task, 'malformed', 'sent a list of tags that is not one');
  return tags.filter((tag) => typeof tag === 'string').filter((tag) => TAG.test(tag));
}

/** Returns where the next page begins. Only that is taken from the header: the registry must not choose the URL. */
function nextOf({ headers }: RegistryResponse): string | undefined {
  const link = (headers.link ?? '').slice(0, MAX_LINK);
  const [, target = ''] = /<([^<>]*)>\s*;[^,<]*\brel="?next\b/.exec(link) ?? [];
  const last = /[?&]last=([^&]*)/.exec(target)?.[1];
  try {
    const tag = last === undefined ? '' : decodeURIComponent(last);
    return TAG.test(tag) ? tag : undefined;
  } catch {
    return undefined;
  }
}

function failure(task: TagsTask, code: 'denied' | 'malformed', what: string): ImageError {
  const label = labelOf(task);
  return new ImageError(`${label} ${what}`, { code, endpoint: label });
}
