import { isIP } from 'node:net';
import { milliseconds } from '../config/duration.ts';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../kube/clock.ts';
import { createImageCache, type ImageCache } from '../oci/cache.ts';
import { createResolver, type Resolver, type ResolverOptions } from '../oci/resolver.ts';
import { matchesAnyGlob } from '../placement/glob.ts';
import type { OperatorFiles } from './operator-files.ts';
import { USER_AGENT } from './version.ts';

/** What differs between the commands that resolve images. */
export type ResolverParts = Pick<ResolverOptions, 'pullSecrets' | 'signal'> &
  Partial<
    Pick<
      ResolverOptions,
      'failures' | 'fingerprintKey' | 'onUnusableSecret' | 'onRequest' | 'onResolution' | 'onCache' | 'onRateLimit'
    >
  > & {
    /** Default: one that is empty and forgotten. */
    readonly cache?: ImageCache;
    /** host[:port] of the API server: whoever writes a pod must not make us ask it. */
    readonly apiServer?: readonly string[];
  };

/** Creates the resolver that the configuration describes. */
export function resolverFor(config: Config, clock: Clock, files: OperatorFiles, parts: ResolverParts): Resolver {
  const { images, registries } = config;
  const { watch: _, ...operators } = files;
  return createResolver({
    cache: createImageCache(images.cache.maxEntries),
    ...operators,
    ...parts,
    isPrivate: (name) => matchesAnyGlob(registries.private, name),
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
