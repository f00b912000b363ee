import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../kit/clock.ts';
import { milliseconds } from '../../kit/duration.ts';
import type { ApiClient } from '../../kube/client.ts';
import { createImageCache, type ImageCache } from '../../oci/cache/cache.ts';
import type { AddressRules } from '../../oci/http/addresses.ts';
import { createResolver, type Resolver, type ResolverOptions } from '../../oci/resolver.ts';
import { createNameMatcher } from '../../placement/image-patterns.ts';
import { USER_AGENT } from '../version.ts';
import type { OperatorFiles } from './operator-files.ts';

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
    /** Whoever writes a pod must not make us ask it. */
    readonly apiServer?: Pick<ApiClient, 'host' | 'addresses'>;
  };

/** Creates the resolver that the configuration describes. */
export function resolverFor(config: Config, clock: Clock, files: OperatorFiles, parts: ResolverParts): Resolver {
  const { images, registries } = config;
  const { watch: _, ...operators } = files;
  const { apiServer, ...others } = parts;
  return createResolver({
    cache: createImageCache(images.cache.maxEntries),
    ...operators,
    ...others,
    isPrivate: createNameMatcher(registries.private),
    ttl: {
      tag: milliseconds(images.cache.tagTtl),
      always: milliseconds(images.cache.alwaysTagTtl),
      failure: milliseconds(images.cache.failureTtl),
    },
    maxEntries: images.cache.maxEntries,
    timeoutMs: milliseconds(registries.timeout),
    maxInFlight: registries.maxInFlight,
    insecure: registries.insecure,
    addresses: { ...registries.addresses, ...(apiServer === undefined ? {} : ownRules(apiServer)) },
    userAgent: USER_AGENT,
    now: clock.steady,
    random: clock.random,
  });
}

/** What every Service's DNS calls the API server; that address may be another one than ours. */
const SERVICE_NAMES = ['', '.default', '.default.svc', '.default.svc.cluster.local'].map((tail) => `kubernetes${tail}`);

/** Its names, and its addresses: the configured one, and where the connections to a name went. */
function ownRules({ host, addresses }: Pick<ApiClient, 'host' | 'addresses'>): AddressRules {
  const name = host.replace(/:[0-9]+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(name) === 0
    ? { ownAddresses: addresses, ownNames: [name, ...SERVICE_NAMES] }
    : { ownAddresses: () => [name, ...addresses()], ownNames: SERVICE_NAMES };
}
