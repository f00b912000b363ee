import { readFile } from 'node:fs/promises';
import type { Config } from '../../config/schema.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Clock } from '../../kit/clock.ts';
import { milliseconds } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import { createProxySelector } from '../../kit/network/forward-proxy.ts';
import { watchFiles } from '../../kit/watch-files.ts';
import { createOperatorCredentials } from '../../oci/credentials/operator.ts';
import { createHostsDirectory } from '../../oci/endpoints/hosts-directory.ts';
import { createRoutes, type RouteOptions, type Routes } from '../../oci/endpoints/mirrors.ts';
import type { FileProblem } from '../../oci/endpoints/operator-file.ts';
import { createRegistriesConf } from '../../oci/endpoints/registries-conf.ts';
import { readAuthorities } from '../../oci/http/trust.ts';
import type { ResolverOptions } from '../../oci/resolver.ts';

/** The operator's files about registries and credentials, from their last readable content. */
export type OperatorFiles = Pick<
  ResolverOptions,
  'operator' | 'providerForPods' | 'endpointsOf' | 'authorities' | 'proxy' | 'namedHosts'
> & {
  /** Reads the files again whenever they change. `onReloaded` gets their problems. */
  watch(signal: AbortSignal, onReloaded: (problems: readonly string[]) => void): Promise<void>;
};

/**
 * Reads the files that the configuration names.
 *
 * @param onProblem called with what is ignored: credential helpers and plug-ins that fail, unknown fields in files of
 *   registries
 * @throws ConfigurationError naming every file that cannot be read or is malformed
 */
export async function loadOperatorFiles(
  config: Config,
  clock: Clock,
  onProblem: (source: string, problem: string) => void,
): Promise<OperatorFiles> {
  const { registries, credentials } = config;
  const timeoutMs = milliseconds(registries.timeout);
  const operator = createOperatorCredentials({ ...credentials, timeoutMs, now: clock.steady, onProblem });
  const onIgnored = ({ file, problem }: FileProblem): void => onProblem(file, problem);
  const hosts = createHostsDirectory(registries.containerdConfigDirectory, onIgnored);
  const conf = createRegistriesConf(registries.containersRegistriesConf, onIgnored);
  // What the configuration does not name is not asked for each image.
  const routes = readRoutes(config, {
    ...(registries.containerdConfigDirectory !== '' && { hosts: hosts.hosts }),
    ...(registries.containersRegistriesConf !== '' && { sources: conf.sources }),
  });
  const proxy = orRefuse(() => createProxySelector(process.env));
  const caFiles = registries.caFile === '' ? [] : [registries.caFile];
  let authorities: readonly string[] = [];
  let named: ReadonlySet<string> = new Set();

  async function reload(): Promise<string[]> {
    const [wrongCredentials, wrongHosts, wrongConf, wrongAuthorities] = await Promise.all([
      operator.reload(),
      hosts.reload(),
      conf.reload(),
      readCaFiles(),
    ]);
    routes.forget();
    named = new Set([...routes.namedHosts(), ...hosts.namedHosts(), ...conf.namedHosts()]);
    return [
      ...wrongAuthorities,
      ...wrongHosts.map((wrong) => `registries.containerdConfigDirectory: ${wrong.file}: ${wrong.problem}`),
      ...wrongConf.map((wrong) => `registries.containersRegistriesConf: ${wrong.file}: ${wrong.problem}`),
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
    ...(operator.paths.length > 0 && { operator: operator.lookup, providerForPods: operator.providerForPods }),
    ...(caFiles.length > 0 && { authorities: () => authorities }),
    proxy,
    namedHosts: () => named,
    endpointsOf: routes.endpointsOf,
    async watch(signal, onReloaded) {
      // A changed hosts.toml may name certificate files that it did not name before.
      const paths = () => [...operator.paths, ...hosts.paths, ...conf.paths, ...caFiles];
      if (paths().length === 0) return;
      const readAgain = async (isChanged: boolean) => {
        const wrong = await reload();
        if (isChanged || wrong.length > 0) onReloaded(wrong);
      };
      await watchFiles(paths, readAgain, { clock, signal });
    },
  };
}

/**
 * Returns the endpoints of `registries.mirrors` and of the files of containerd or CRI-O.
 *
 * @throws ConfigurationError for invalid mirrors
 */
export function readRoutes({ registries }: Config, files: Pick<RouteOptions, 'hosts' | 'sources'>): Routes {
  return orRefuse(() => createRoutes({ ...registries, ...files }));
}

/** Returns the registries that always get a label of their own in metrics, by their names in images. */
export function registryNames({ registries }: Config, { namedHosts }: Pick<OperatorFiles, 'namedHosts'>): string[] {
  const mirrored = Object.entries(registries.mirrors).flatMap(([registry, { endpoints }]) => [registry, ...endpoints]);
  const names = mirrored.map((name) => name.replace(/^https?:\/\//, '').toLowerCase());
  return [...new Set([...names, ...(namedHosts?.() ?? [])])];
}

/** Turns the errors of parts about their settings into errors of the configuration. */
function orRefuse<T>(create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw new ConfigurationError([messageOf(error)]);
  }
}
