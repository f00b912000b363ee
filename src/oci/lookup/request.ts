import { type Endpoint, type EndpointTarget, labelOf, repositoryUrl } from '../endpoints/endpoint.ts';
import type { Credential, RegistryRequest } from '../http/transport.ts';

/** One endpoint, asked about one image with one credential. */
export type QueriedEndpoint = EndpointTarget & {
  /** Absent: anonymously. */
  readonly credential: Credential | undefined;
  /** Whether no request about the image may be sent without the credential. */
  readonly isPrivate: boolean;
  readonly signal: AbortSignal;
} & Pick<RegistryRequest, 'onRateLimit'>;

/** Returns the request for a path below the image's repository, for example `manifests/latest`. */
export function requestFor(
  asked: QueriedEndpoint,
  path: string,
  more: Pick<RegistryRequest, 'method' | 'headers' | 'maxBytes' | 'timeoutMs' | 'read'>,
): RegistryRequest {
  const { endpoint, credential, isPrivate, signal, onRateLimit } = asked;
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
    ...more,
  };
}

/** Returns the URL of `/v2/` of a registry (distribution specification, end-1), whatever the endpoint's path. */
function rootOf({ base }: Endpoint): URL {
  return new URL(`${/^(.*?\/v2)(?:\/|$)/.exec(base)?.[1] ?? base}/`);
}
