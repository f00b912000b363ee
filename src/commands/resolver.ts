import { isIP } from 'node:net';
import { milliseconds } from '../config/duration.ts';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../kube/clock.ts';
import { createResolver, type Resolver, type ResolverOptions } from '../oci/resolver.ts';
import { USER_AGENT } from './version.ts';

/** What differs between the commands that resolve images. */
export type ResolverParts = Pick<ResolverOptions, 'pullSecrets' | 'signal'> &
  Partial<Pick<ResolverOptions, 'onUnusableSecret' | 'onRequest' | 'onResolution' | 'onCache'>> & {
    /** host[:port] of the API server: whoever writes a pod must not make us ask it. */
    readonly apiServer?: readonly string[];
  };

/** Creates the resolver that the configuration describes. */
export function resolverFor(config: Config, clock: Clock, parts: ResolverParts): Resolver {
  const { images, registries } = config;
  return createResolver({
    ...parts,
    ttl: {
      tag: milliseconds(images.cache.tagTtl),
      always: milliseconds(images.cache.alwaysTagTtl),
      failure: milliseconds(images.cache.failureTtl),
    },
    maxEntries: images.cache.maxEntries,
    timeoutMs: milliseconds(registries.timeout),
    maxInFlight: registries.maxInFlight,
    insecure: registries.insecure,
    addresses: { ...registries.addresses, ownAddresses: (parts.apiServer ?? []).flatMap(addressOf) },
    userAgent: USER_AGENT,
    now: clock.wall,
    random: clock.random,
  });
}

/** The address in host[:port]; nothing for a name, whose addresses may change at any time. */
function addressOf(host: string): string[] {
  const address = host.replace(/:[0-9]+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(address) === 0 ? [] : [address];
}
