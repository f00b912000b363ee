import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { createFailures, type ImageCache } from '../../oci/cache.ts';
import { newFingerprintKey } from '../../oci/credentials/keyring.ts';
import type { Resolver } from '../../oci/resolver.ts';
import { loadOperatorFiles, type OperatorFiles, registryNames } from './operator-files.ts';
import { type ResolverParts, resolverFor } from './resolver-for.ts';

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
