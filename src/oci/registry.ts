import type { LookupFunction } from 'node:net';
import type { AddressRules } from './addresses.ts';
import { authenticate } from './authentication.ts';
import { createSend } from './connection.ts';
import { createGuard } from './guard.ts';
import { chain, deadline, followRedirects, measure, type RequestRecord, type Send } from './transport.ts';

export type RegistryOptions = {
  /** host[:port] of registries with plain http or an unverifiable certificate; may be on loopback. */
  readonly insecure: readonly string[];
  readonly addresses: AddressRules;
  readonly userAgent: string;
  /** Milliseconds for one request, its redirects and body included. */
  readonly timeoutMs: number;
  readonly now: () => number;
  /** After each request over the wire. */
  readonly onRequest?: (record: RequestRecord) => void;
  /** In place of the guarded connections, for tests. */
  readonly send?: Send;
  /** In place of the system's DNS. */
  readonly lookup?: LookupFunction;
};

/** The way of a request to any registry: challenges, deadline, redirects, metrics, guarded connections. */
export type Registry = {
  readonly send: Send;
  /** Whether a host[:port] is named as insecure. */
  isConfigured(host: string): boolean;
  /** Ends all connections. */
  destroy(): void;
};

/** @throws Error for CIDRs in `addresses` that are none */
export function createRegistry(options: RegistryOptions): Registry {
  const { now, timeoutMs } = options;
  const guard = createGuard({
    ...options.addresses,
    insecure: options.insecure,
    connectTimeoutMs: timeoutMs,
    ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
  });
  const wire = chain(
    [measure((record) => options.onRequest?.(record), now)],
    options.send ?? createSend({ guard, userAgent: options.userAgent }),
  );
  const { isConfigured, isPublic, destroy } = guard;
  // A token service may not redirect: its answer would carry what was meant for another.
  const authentication = authenticate({
    named: (host) => (isConfigured(host) ? { policy: 'configured' } : undefined),
    isPublic,
    now,
    send: chain([deadline(timeoutMs)], wire),
  });
  return {
    send: chain([authentication, deadline(timeoutMs), followRedirects()], wire),
    isConfigured,
    destroy,
  };
}
