import { digestOf, isDigest, matchesDigest } from '../digest.ts';
import { type Endpoint, type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
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

/** One endpoint, asked about one image with one credential. */
export type QueriedEndpoint = EndpointTarget & {
  /** Absent: anonymously. */
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

/** Returns the request for a path below the image's repository, for example `manifests/latest`. */
export function requestFor(
  asked: QueriedEndpoint,
  path: string,
  more: Pick<RegistryRequest, 'maxBytes' | 'timeoutMs' | 'read'> & Partial<Pick<RegistryRequest, 'method' | 'headers'>>,
): RegistryRequest {
  const { endpoint, credential, isPrivate, signal, onRateLimit } = asked;
  const accept = path.startsWith('manifests/') ? MANIFEST_ACCEPT : '*/*';
  return {
    url: new URL(`${repositoryUrl(endpoint)}/${path}${endpoint.query}`),
    scope: `repository:${endpoint.repository}:pull`,
    registry: labelOf(asked),
    policy: endpoint.policy,
    ...(endpoint.trust === undefined ? {} : { trust: endpoint.trust }),
    endpointHeaders: endpoint.headers,
    ...(credential === undefined ? {} : { credential }),
    root: rootOf(endpoint),
    ...(isPrivate ? { isPrivate } : {}),
    signal,
    onRateLimit,
    method: 'GET',
    ...more,
    headers: { accept, ...more.headers },
  };
}

/** Returns the URL of `/v2/` of a registry (distribution specification, end-1), whatever the endpoint's path. */
function rootOf({ base }: Endpoint): URL {
  return new URL(`${/^(.*?\/v2)(?:\/|$)/.exec(base)?.[1] ?? base}/`);
}

/** What a registry is asked for. The functions that fetch something check its digest; they throw ImageError, or the signal's reason. */
export function createRequests({ send, now }: { readonly send: SendRequest; readonly now: () => number }) {
  const failed = (response: RegistryResponse, asked: QueriedEndpoint, what: string): ImageError =>
    statusError(response, labelOf(asked), what, now());

  /** Checks the digest of a manifest: the requested digest if there was one, otherwise that in the registry's header. */
  function verified({ body, headers }: RegistryResponse, asked: QueriedEndpoint, digest: string | undefined): Sent {
    const { etag, 'content-type': contentType, 'docker-content-digest': header = '' } = headers;
    const claimed = isDigest(header) ? header : undefined;
    for (const expected of [digest, claimed]) {
      if (expected === undefined || matchesDigest(body, expected)) continue;
      // The digest of a signed manifest is computed without its signatures, so it never matches.
      refuseSchema1(body, contentType);
      throw mismatch(asked, 'manifest');
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
    /** Sends HEAD or GET for a manifest, and returns whatever the registry answers. */
    ask: (asked: QueriedEndpoint, method: 'GET' | 'HEAD', target: string, headers = {}): Promise<RegistryResponse> =>
      send(requestFor(asked, `manifests/${target}`, { method, headers, maxBytes: MAX_MANIFEST })),
    /** @param target a tag or a digest */
    async manifest(asked: QueriedEndpoint, target: string, maxBytes = MAX_MANIFEST): Promise<Sent> {
      const response = await send(requestFor(asked, `manifests/${target}`, { maxBytes }));
      if (!isSuccess(response)) throw failed(response, asked, 'the manifest');
      return verified(response, asked, isDigest(target) ? target : undefined);
    },
    async config(asked: QueriedEndpoint, digest: string, maxBytes: number): Promise<Uint8Array> {
      const response = await send(requestFor(asked, `blobs/${digest}`, { maxBytes }));
      if (!isSuccess(response)) throw failed(response, asked, 'the config blob');
      if (!matchesDigest(response.body, digest)) throw mismatch(asked, 'config blob');
      return response.body;
    },
  };
}

function mismatch(asked: QueriedEndpoint, what: string): ImageError {
  const label = labelOf(asked);
  return new ImageError(`${label} sent a ${what} that does not match its digest`, {
    code: 'malformed',
    endpoint: label,
  });
}
