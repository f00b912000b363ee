import type { LookupFunction } from 'node:net';
import type { AddressRules } from './addresses.ts';
import { authenticate } from './authentication.ts';
import { createSend } from './connection.ts';
import { createGuard } from './guard.ts';
import type { ProxySelector } from './proxy.ts';
import { type RateLimit, reportRateLimit } from './rate-limit.ts';
import {
  chain,
  deadline,
  followRedirects,
  measure,
  type Named,
  type RequestRecord,
  type SendRequest,
} from './transport.ts';
import { insecureTrust } from './trust.ts';

export type RegistryOptions = {
  /** host[:port] of registries with plain http or an unverifiable certificate; may be on loopback. */
  readonly insecure: readonly string[];
  /** host[:port] of others that the operator named, as of now: they may be on loopback, and are verified. */
  readonly namedHosts?: () => ReadonlySet<string>;
  readonly addresses: AddressRules;
  /** PEM of authorities that are trusted besides the built-in ones, as of now. */
  readonly authorities?: () => readonly string[];
  /** Absent: all is asked directly. */
  readonly proxy?: ProxySelector;
  readonly userAgent: string;
  /** Milliseconds for one request, its redirects and body included. */
  readonly timeoutMs: number;
  readonly now: () => number;
  /** After each request over the wire. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** With each answer about a manifest that tells it. */
  readonly onRateLimit?: (rateLimit: RateLimit) => void;
  /** In place of the guarded connections, for tests. */
  readonly send?: SendRequest;
  /** In place of the system's DNS. */
  readonly lookup?: LookupFunction;
};

/** The way of a request to any registry: challenges, deadline, redirects, metrics, guarded connections. */
export type Registry = {
  readonly send: SendRequest;
  /** Ends all connections. */
  destroy(): void;
};

/** @throws Error for CIDRs in `addresses` that are none */
export function createRegistry(options: RegistryOptions): Registry {
  const { now, timeoutMs, proxy, authorities, lookup } = options;
  const insecure = new Set(options.insecure.map((host) => host.toLowerCase()));
  const guard = createGuard({
    ...options.addresses,
    connectTimeoutMs: timeoutMs,
    now,
    ...(authorities === undefined ? {} : { authorities }),
    ...(lookup === undefined ? {} : { lookup }),
  });
  const wire = chain(
    [measure((record) => options.onRequest?.(record), now)],
    options.send ?? createSend({ guard, userAgent: options.userAgent, ...(proxy === undefined ? {} : { proxy }) }),
  );
  const { isPublic, destroy } = guard;
  // A token service may not redirect: its answer would carry what was meant for another.
  const authentication = authenticate({ named, isPublic, now, send: chain([deadline(timeoutMs)], wire) });
  const redirects = reportRateLimit((rateLimit) => options.onRateLimit?.(rateLimit), followRedirects(named));
  return { send: chain([authentication, deadline(timeoutMs), redirects], wire), destroy };

  /** What holds for a host that the operator named, wherever a registry leads to it. */
  function named({ protocol, host, port }: URL): ReturnType<Named> {
    // A URL drops the port that its scheme has anyway; an operator may write it.
    const full = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
    if (insecure.has(host) || insecure.has(full)) return { policy: 'configured', trust: insecureTrust };
    return options.namedHosts?.().has(host) ? { policy: 'configured' } : undefined;
  }
}
