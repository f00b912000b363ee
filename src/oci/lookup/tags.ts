import { parseObject } from '../../kit/json.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import { isSuccess, type RegistryResponse, type SendRequest, statusError } from '../http/transport.ts';
import { type QueriedEndpoint, requestFor } from './request.ts';

/** The most tags of one page, and the most pages: a repository may have millions of tags. */
const PAGE = 1_000;
const MOST_PAGES = 5;
const MAX_BYTES = 512 * 1024;
/** Characters of a `Link` header that are read. */
const MAX_LINK = 8192;
/** Distribution specification, "Pulling manifests". */
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/**
 * Lists the tags of an image's repository at one endpoint (distribution specification, end-8), at most 5,000 of them.
 *
 * @throws ImageError, or the signal's reason
 */
export async function listTags(asked: QueriedEndpoint, send: SendRequest, now: () => number): Promise<string[]> {
  const tags: string[] = [];
  const headers = { accept: 'application/json' };
  let last = '';
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const request = requestFor(asked, 'tags/list', { headers, maxBytes: MAX_BYTES });
    request.url.searchParams.set('n', String(PAGE));
    if (last !== '') request.url.searchParams.set('last', last);
    const response = await send(request);
    if (!isSuccess(response)) throw statusError(response, labelOf(asked), 'the tags', now());
    tags.push(...readTags(response, labelOf(asked)));
    const next = nextOf(response);
    if (next === undefined || next === last) break;
    last = next;
  }
  return tags;
}

function readTags({ body }: RegistryResponse, endpoint: string): string[] {
  const { tags } = parseObject(body) ?? {};
  // A repository without tags may say null.
  if (tags === null) return [];
  if (!Array.isArray(tags)) {
    throw new ImageError(`${endpoint} sent a list of tags that is not one`, { code: 'malformed', endpoint });
  }
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
