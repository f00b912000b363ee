import { ImageError } from '../errors.ts';
import type { ResolverTelemetry } from '../resolver-telemetry.ts';
import { createGuard, type GuardOptions } from './address-guard.ts';
import type { AddressRules } from './addresses.ts';
import { authenticate } from './authentication.ts';
import { createSend } from './connection.ts';
import { followOnHost } from './token.ts';
import {
  chain,
  deadline,
  followRedirects,
  measure,
  type Named,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
} from './transport.ts';
import { insecureTrust } from './trust.ts';

export type RegistryOptions = Omit<GuardOptions, keyof AddressRules | 'connectTimeoutMs'> & {
  readonly userAgent: string;
  /** host[:port] of registries with plain http or an unverifiable certificate; they may be on loopback. */
  readonly insecure: readonly string[];
  /**
   * host[:port] of the other hosts that the operator named, at this moment: they may be on loopback, and their
   * certificates are verified.
   */
  readonly namedHosts?: () => ReadonlySet<string>;
  readonly addresses: AddressRules;
  /** Milliseconds for one request, including its redirects and its body. */
  readonly timeoutMs: number;
  readonly telemetry?: Partial<ResolverTelemetry>;
  /** Replaces the guarded connections, for tests. */
  readonly send?: SendRequest;
};

/** The share of a request's time that the connection may take. */
const CONNECT_SHARE = 2 / 3;

/**
 * Creates what sends requests to any registry, through challenges, deadline, redirects, metrics and guarded connections.
 *
 * @throws Error for invalid CIDRs in `addresses`
 */
export function createRegistry(options: RegistryOptions) {
  const { now, after, timeoutMs } = options;
  const insecure = new Set(options.insecure.map((host) => host.toLowerCase()));
  // Shorter than the request's own limit, so that a host that cannot be reached is not taken for one that is silent.
  const guard = createGuard({ ...options, ...options.addresses, connectTimeoutMs: timeoutMs * CONNECT_SHARE });
  const wire = chain(
    [measure((record, place) => options.telemetry?.requested?.(record, place), now)],
    options.send ?? createSend(guard, options.userAgent),
  );
  const { isPublic, destroy } = guard;
  const tokens = chain([deadline(timeoutMs, after), followOnHost({ named, isPublic })], wire);
  const authentication = authenticate({ named, isPublic, now, send: tokens });
  return {
    send: chain([reportRefusals, authentication, deadline(timeoutMs, after), followRedirects(named)], wire),
    destroy,
  };

  /** Returns the settings of a host that the operator named, however the request gets there. */
  function named({ protocol, host, port }: URL): ReturnType<Named> {
    // A URL drops the default port of its scheme, but an operator may write it.
    const full = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
    if (insecure.has(host) || insecure.has(full)) return { policy: 'configured', trust: insecureTrust };
    return options.namedHosts?.().has(host) ? { policy: 'configured' } : undefined;
  }
}

/** Reports that the registry itself, or its token service, refused a credential that was sent: 401 or 403. */
async function reportRefusals(request: RegistryRequest, next: SendRequest): Promise<RegistryResponse> {
  const report = (status: number | undefined): void => {
    if (status === 401 || status === 403) request.credential?.onRefused?.();
  };
  try {
    const response = await next(request);
    if (response.isAnonymous !== true && response.url.host === request.url.host) report(response.status);
    return response;
  } catch (error) {
    if (error instanceof ImageError) report(error.status);
    throw error;
  }
}
