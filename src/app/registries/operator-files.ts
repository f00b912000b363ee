import { readFile } from 'node:fs/promises';
import { ConfigurationError } from '../../config/problems.ts';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../kit/clock.ts';
import { milliseconds } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import { watchFiles } from '../../kit/watch-files.ts';
import { createOperatorCredentials } from '../../oci/credentials/operator.ts';
import type { Endpoint } from '../../oci/endpoints/endpoint.ts';
import { createHostsDirectory } from '../../oci/endpoints/hosts-directory.ts';
import { createRoutes, type RouteOptions, type Routes } from '../../oci/endpoints/mirrors.ts';
import { createProxySelector } from '../../oci/http/proxy.ts';
import { readAuthorities } from '../../oci/http/trust.ts';
import type { Reference } from '../../oci/reference.ts';
import type { ResolverOptions } from '../../oci/resolver.ts';

/** What the operator's files say of registries, as of their last good contents. */
export type OperatorFiles = Pick<
  ResolverOptions,
  'operator' | 'endpointsOf' | 'authorities' | 'proxy' | 'namedHosts'
> & {
  /** Reads the files again whenever they change; `onReloaded` gets what is wrong with them. */
  watch(signal: AbortSignal, onReloaded: (problems: readonly string[]) => void): Promise<void>;
};

/**
 * Reads the files that the configuration names.
 *
 * @param onProblem told of what is passed over: credential helpers and plug-ins that fail, unknown fields in hosts.toml
 * @throws ConfigurationError with every file that cannot be read or is malformed
 */
export async function openOperatorFiles(
  config: Config,
  clock: Clock,
  onProblem: (source: string, problem: string) => void,
): Promise<OperatorFiles> {
  const { registries, credentials } = config;
  const operator = createOperatorCredentials({
    ...credentials,
    timeoutMs: milliseconds(registries.timeout),
    now: clock.steady,
    onProblem,
  });
  const hosts = createHostsDirectory({
    directory: registries.containerdConfigDirectory,
    onIgnored: ({ file, problem }) => onProblem(file, problem),
  });
  const routes = readRoutes(config, hosts.hosts);
  const proxy = orRefuse(() => createProxySelector(process.env));
  const caFiles = registries.caFile === '' ? [] : [registries.caFile];
  let authorities: readonly string[] = [];
  let named: ReadonlySet<string> = new Set();
  // References are remembered, and asked for at every reconciliation.
  let endpoints = new WeakMap<Reference, readonly Endpoint[]>();

  async function reload(): Promise<string[]> {
    const [wrongCredentials, wrongHosts, wrongAuthorities] = await Promise.all([
      operator.reload(),
      hosts.reload(),
      readCaFiles(),
    ]);
    endpoints = new WeakMap();
    named = new Set([...routes.namedHosts(), ...hosts.namedHosts()]);
    return [
      ...wrongAuthorities,
      ...wrongHosts.map((wrong) => `registries.containerdConfigDirectory: ${wrong.file}: ${wrong.problem}`),
      ...wrongCredentials.map((wrong) => `${wrong.key}: ${wrong.file}: ${wrong.problem}`),
    ];
  }

  async function readCaFiles(): Promise<string[]> {
    try {
      authorities = (
        await Promise.all(caFiles.map(async (file) => readAuthorities(await readFile(file, 'utf8'))))
      ).flat();
      return [];
    } catch (error) {
      return [`registries.caFile: ${registries.caFile}: ${messageOf(error)}`];
    }
  }

  const problems = await reload();
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    operator: operator.lookup,
    authorities: () => authorities,
    proxy,
    namedHosts: () => named,
    endpointsOf(reference) {
      const known = endpoints.get(reference);
      if (known !== undefined) return known;
      const found = routes.endpointsOf(reference);
      endpoints.set(reference, found);
      return found;
    },
    async watch(signal, onReloaded) {
      // A hosts.toml may name certificates elsewhere that it did not name before.
      const paths = () => [...operator.paths, ...hosts.paths, ...caFiles];
      if (paths().length === 0) return;
      const readAgain = async (isChanged: boolean) => {
        const wrong = await reload();
        if (isChanged || wrong.length > 0) onReloaded(wrong);
      };
      await watchFiles(paths, readAgain, { signal });
    },
  };
}

/**
 * The endpoints of `registries.mirrors` and of a directory of containerd.
 *
 * @throws ConfigurationError for mirrors that are none
 */
export function readRoutes({ registries }: Config, hosts: RouteOptions['hosts']): Routes {
  return orRefuse(() => createRoutes({ ...registries, hosts }));
}

/** Registries that metrics always tell apart, however many others pods name: a source by its name in images. */
export function registryNames({ registries }: Config, { namedHosts }: Pick<OperatorFiles, 'namedHosts'>): string[] {
  const mirrored = Object.entries(registries.mirrors).flatMap(([registry, { endpoints }]) => [registry, ...endpoints]);
  const names = mirrored.map((name) => name.replace(/^https?:\/\//, '').toLowerCase());
  return [...new Set([...names, ...(namedHosts?.() ?? [])])];
}

/** What the parts find wrong with their settings is wrong with the configuration. */
function orRefuse<T>(create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw new ConfigurationError([messageOf(error)]);
  }
}

/** For commands that print and end: what was passed over, on stderr. */
export function tellOfProblem(source: string, problem: string): void {
  process.stderr.write(`${source}: ${problem}\n`);
}
