import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../kit/clock.ts';
import { milliseconds } from '../../kit/duration.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import type { Logger } from '../../observability/log.ts';
import { createFailures, createImageCache, type ImageCache } from '../../oci/cache.ts';
import { newFingerprintKey } from '../../oci/credentials/keyring.ts';
import type { AddressRules } from '../../oci/http/address-guard.ts';
import { createResolver, type Resolver, type ResolverOptions, type TagResolver } from '../../oci/resolver.ts';
import { createNameMatcher } from '../../placement/image-patterns.ts';
import { USER_AGENT } from '../version.ts';
import { loadOperatorFiles, type OperatorFiles, registryNames } from './operator-files.ts';

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

export type RegistriesOptions = Omit<ResolverParts, 'cache' | 'failures' | 'fingerprintKey' | 'pullSecrets'> & {
  readonly cache: ImageCache;
  readonly readPullSecrets: ResolverParts['pullSecrets'];
  /** Called with the registries that a configuration names, when it comes into force. */
  readonly onNamed: (registries: readonly string[]) => void;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Opens the operator's files. Throws a ConfigurationError that names each file that cannot be read. */
export function openFiles(config: Config, clock: Clock, log: Logger): Promise<OperatorFiles> {
  return loadOperatorFiles(config, clock, (source, problem) =>
    log.warn({ source, problem }, 'source of registries or credentials ignored'),
  );
}

/** Creates the resolver over opened files, and reads these again whenever they change. */
export async function createRegistries(
  config: Config,
  files: OperatorFiles,
  { readPullSecrets, onNamed, clock, log, signal, ...parts }: RegistriesOptions,
) {
  const listeners: ((canonical: string) => void)[] = [];
  const failures = createFailures({
    maxEntries: config.images.cache.maxEntries,
    now: clock.steady,
    random: clock.random,
  });
  const fingerprintKey = newFingerprintKey();
  let current = await open(config, files);

  async function open(wanted: Config, opened: OperatorFiles) {
    onNamed(registryNames(wanted, opened));
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const resolver = resolverFor(wanted, clock, opened, {
      ...parts,
      failures,
      fingerprintKey,
      pullSecrets: wanted.credentials.pullSecrets ? readPullSecrets : async () => [],
      signal: either,
    });
    resolver.onSettled((canonical) => {
      for (const listener of listeners) listener(canonical);
    });
    await opened.watch(either, (problems) => {
      if (problems.length === 0) log.info('files of registries and credentials reloaded');
      else
        log.error(
          { problems },
          'files of registries and credentials reloaded, except those with problems: their previous contents stay in use',
        );
      resolver.forgive();
    });
    return { resolver, end: () => over.abort() };
  }

  /** A stable object. The resolver behind it may be replaced. */
  const resolver: Pick<Resolver, 'look' | 'onSettled' | 'failing'> = {
    look: (image, access, mayStart) => current.resolver.look(image, access, mayStart),
    onSettled: (listener) => void listeners.push(listener),
    failing: () => current.resolver.failing(),
  };
  return {
    resolver,
    /**
     * Replaces the resolver by one for this configuration. It takes over the knowledge and the failures. The end of lookups that are
     * under way is not reported, so callers that wait for an image must ask again.
     *
     * @throws ConfigurationError naming every file that cannot be read; then nothing has changed
     */
    async replace(wanted: Config): Promise<void> {
      const before = current;
      current = await open(wanted, await openFiles(wanted, clock, log));
      before.end();
      current.resolver.forgive();
    },
  };
}
