import { parseObject } from '../../kit/json.ts';
import { labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import {
  type Credential,
  isSuccess,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
  statusError,
} from '../http/transport.ts';
import { MANIFEST_ACCEPT, MAX_MANIFEST, type Manifest, parseManifest, refuseSchema1 } from '../manifest.ts';
import { digestOf, isDigest, matchesDigest } from '../reference.ts';
import type { Target } from './health.ts';

/** One endpoint, asked about one image with one credential. */
export type QueriedTarget = Target & {
  /** Undefined: anonymously. */
  readonly credential: Credential | undefined;
  /** Whether no request about the image may be sent without the credential. */
  readonly isPrivate: boolean;
  readonly signal: AbortSignal;
} & Pick<RegistryRequest, 'onRateLimit'>;

/** A manifest as a registry sent it. */
export type Sent = {
  readonly digest: string;
  readonly body: Uint8Array;
  /** Parses it (`parseManifest`). `before`: the number of entries that led to it. */
  readonly manifest: (before: number) => Manifest;
  readonly etag?: string;
  /** When it was sent, in milliseconds. */
  readonly at: number;
};

/** What a registry is asked for with. */
export type ImageRequests = ReturnType<typeof createRequests>;

type Details = Pick<RegistryRequest, 'maxBytes' | 'timeoutMs' | 'read'> &
  Partial<Pick<RegistryRequest, 'method' | 'headers'>> & { readonly search?: Readonly<Record<string, string>> };

/** The most tags of one page, and the most pages: a repository may have millions of tags. */
const PAGE = 1_000;
const MOST_PAGES = 5;
const MAX_TAGS = 512 * 1024;
/** Characters of a `Link` header that are read. */
const MAX_LINK = 8192;
/** Distribution specification, "Pulling manifests". */
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/** What a registry is asked for. The functions that fetch something check its digest; they throw ImageError, or the signal's reason. */
export function createRequests({ send, now }: { readonly send: SendRequest; readonly now: () => number }) {
  const failed = (response: RegistryResponse, asked: QueriedTarget, what: string): ImageError =>
    statusError(response, labelOf(asked), what, now());

  /** Sends a request for a path below the image's repository, for example `manifests/latest`; returns whatever the registry answers. */
  function ask(asked: QueriedTarget, path: string, { search = {}, ...more }: Details): Promise<RegistryResponse> {
    const { endpoint, credential, isPrivate, signal, onRateLimit } = asked;
    const { base, repository, policy, trust, headers: endpointHeaders } = endpoint;
    const url = new URL(`${repositoryUrl(endpoint)}/${path}${endpoint.query}`);
    for (const [name, value] of Object.entries(search)) url.searchParams.set(name, value);
    return send({
      ...{ url, policy, trust, endpointHeaders, credential, isPrivate, signal, onRateLimit },
      scope: `repository:${repository}:pull`,
      registry: labelOf(asked),
      // `/v2/`, whatever the endpoint's path (distribution specification, end-1).
      root: new URL(`${/^(.*?\/v2)(?:\/|$)/.exec(base)?.[1] ?? base}/`),
      method: 'GET',
      ...more,
      headers: { accept: path.startsWith('manifests/') ? MANIFEST_ACCEPT : '*/*', ...more.headers },
    });
  }

  /** Fetches something; `what` names it in messages. */
  async function get(asked: QueriedTarget, path: string, what: string, more: Details): Promise<RegistryResponse> {
    const response = await ask(asked, path, more);
    if (!isSuccess(response)) throw failed(response, asked, what);
    return response;
  }

  /** Checks the digest of a manifest: the requested digest if there was one, otherwise that in the registry's header. */
  function verified({ body, headers }: RegistryResponse, asked: QueriedTarget, digest: string | undefined): Sent {
    const { etag, 'content-type': contentType, 'docker-content-digest': header = '' } = headers;
    const claimed = isDigest(header) ? header : undefined;
    for (const expected of [digest, claimed]) {
      if (expected === undefined || matchesDigest(body, expected)) continue;
      // The digest of a signed manifest is computed without its signatures, so it never matches.
      refuseSchema1(body, contentType);
      throw malformed(asked, 'a manifest that does not match its digest');
    }
    return {
      digest: digest ?? claimed ?? digestOf(body),
      body,
      manifest: (before) => parseManifest(body, contentType, before),
      at: now(),
      ...(etag !== undefined && /^(W\/)?"[\x21\x23-\x7e]{1,256}"$/.test(etag) ? { etag } : {}),
    };
  }

  return {
    failed,
    verified,
    get,
    /** Sends HEAD or GET for a manifest, and returns whatever the registry answers. */
    ask: (asked: QueriedTarget, method: 'GET' | 'HEAD', target: string, headers = {}): Promise<RegistryResponse> =>
      ask(asked, `manifests/${target}`, { method, headers, maxBytes: MAX_MANIFEST }),
    /** @param target a tag or a digest */
    async manifest(asked: QueriedTarget, target: string, maxBytes = MAX_MANIFEST): Promise<Sent> {
      const response = await get(asked, `manifests/${target}`, 'the manifest', { maxBytes });
      return verified(response, asked, isDigest(target) ? target : undefined);
    },
    async config(asked: QueriedTarget, digest: string, maxBytes: number): Promise<Uint8Array> {
      const { body } = await get(asked, `blobs/${digest}`, 'the config blob', { maxBytes });
      if (!matchesDigest(body, digest)) throw malformed(asked, 'a config blob that does not match its digest');
      return body;
    },
    /** Lists the tags of an image's repository (distribution specification, end-8), at most 5,000 of them. */
    async tags(asked: QueriedTarget): Promise<string[]> {
      const tags: string[] = [];
      const more = { headers: { accept: 'application/json' }, maxBytes: MAX_TAGS };
      let last: string | undefined;
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const search = { n: String(PAGE), ...(last && { last }) };
        const response = await get(asked, 'tags/list', 'the tags', { ...more, search });
        const listed = parseObject(response.body)?.tags;
        // A repository without tags may say null.
        if (listed !== null && !Array.isArray(listed)) throw malformed(asked, 'a list of tags that is not one');
        tags.push(...(listed ?? []).filter((tag) => typeof tag === 'string' && TAG.test(tag)));
        const next = nextOf(response);
        if (next === undefined || next === last) break;
        last = next;
      }
      return tags;
    },
  };
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

function malformed(asked: QueriedTarget, what: string): ImageError {
  const endpoint = labelOf(asked);
  return new ImageError(`${endpoint} sent ${what}`, { code: 'malformed', endpoint });
}
