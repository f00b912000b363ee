import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../kit/clock.ts';
import { milliseconds } from '../../kit/duration.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { createImageCache, type ImageCache } from '../../oci/cache.ts';
import type { AddressRules } from '../../oci/http/address-guard.ts';
import { createResolver, type ResolverOptions, type TagResolver } from '../../oci/resolver.ts';
import { createNameMatcher } from '../../placement/image-patterns.ts';
import { USER_AGENT } from '../version.ts';
import type { OperatorFiles } from './operator-files.ts';

/** The parts of a resolver that differ between commands. */
export type ResolverParts = Pick<ResolverOptions, 'pullSecrets' | 'signal'> &
  Partial<
    Pick<ResolverOptions, 'failures' | 'fingerprintKey' | 'namesSkipped' | 'patienceMs' | 'waitsUntil' | 'telemetry'>
  > & {
    /** Default: an empty cache. */
    readonly cache?: ImageCache;
    /** The API server, which lookups must not contact: the author of a pod could name it as a registry. */
    readonly apiServer?: Pick<ApiClient, 'host' | 'addresses'>;
  };

/** Creates the resolver that the configuration describes. */
export function resolverFor(config: Config, clock: Clock, files: OperatorFiles, parts: ResolverParts): TagResolver {
  const { images, registries } = config;
  const { watch: _, ...operators } = files;
  const { apiServer, ...others } = parts;
  return createResolver({
    cache: createImageCache(images.cache.maxEntries),
    ...operators,
    ...others,
    ...(registries.private.length > 0 && { isPrivate: createNameMatcher(registries.private) }),
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
    after: clock.after,
  });
}

/** The cluster DNS names of the API server. Their address may differ from the one that archaware uses. */
const SERVICE_NAMES = ['', '.default', '.default.svc', '.default.svc.cluster.local'].map((tail) => `kubernetes${tail}`);

/** Returns the rules that block the API server: its names, its configured address, and the addresses of its connections. */
function ownRules({ host, addresses }: Pick<ApiClient, 'host' | 'addresses'>): AddressRules {
  const name = host.replace(/:[0-9]+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(name) === 0
    ? { ownAddresses: addresses, ownNames: [name, ...SERVICE_NAMES] }
    : { ownAddresses: () => [name, ...addresses()], ownNames: SERVICE_NAMES };
}
