import { openClients } from '../app/connect.ts';
import type { Context, Surroundings } from '../app/surroundings.ts';
import { takenFrom } from '../config/cluster-keys.ts';
import {
  type ConfigFile,
  parseConfig,
  readConfigFile,
  readConfigOrInput,
  STANDARD_INPUT,
} from '../config/config-file.ts';
import { loadConfig } from '../config/load.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { KubeconfigError } from '../kube/access.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { ApiError, ConnectionError, isForbidden } from '../kube/errors.ts';
import { type Installation, installationIn, installationText } from '../kube/installation.ts';
import { createRetryingClient, isTemporary } from '../kube/retry.ts';
import { findDeployed } from './deployed.ts';

/** The part of a command line that a configuration is made of. */
export type ConfigWords = {
  /** The values of flags that are configuration keys. */
  readonly keys: Readonly<Record<string, string>>;
  readonly configFile: string | undefined;
};

/** The part of a command line that every command understands. */
export type CommonWords = ConfigWords & Pick<Context, 'kubeconfig' | 'context' | 'installation' | 'output'>;

/** Loads the configuration from the command line, the environment and the file of `--config`. Throws ConfigurationError. */
export async function ownContext(words: CommonWords, surroundings: Surroundings): Promise<Context> {
  const { keys, configFile, ...common } = words;
  const { environment, note, readInput } = surroundings;
  const load = (file: ConfigFile | undefined) => loadConfig({ file, environment, flags: keys });
  const file = configFile === undefined ? undefined : await readConfigOrInput(configFile, readInput);
  if (file?.note !== undefined) note(`${file.name}: ${file.note}`);
  // Standard input cannot be read again.
  const isWatched = configFile !== undefined && configFile !== STANDARD_INPUT;
  const watched = isWatched ? { name: configFile, load: () => load(readConfigFile(configFile)).config } : undefined;
  const origin = configFile === undefined ? 'defaults' : 'file';
  return { ...surroundings, ...common, ...load(file), file: watched, origin };
}

type ParseWords = (words: readonly string[]) => Promise<ConfigWords>;

/** How `clusterContext` reads. `toleratesMistakes`: a configuration with a mistake counts as one that could not be read. */
export type ClusterReading = { readonly toleratesMistakes?: boolean };

/**
 * Loads the configuration of the installation in the cluster, unless `--config` names a file: in the controller's own pod the file
 * that it reads; elsewhere the ConfigMap that its Deployment mounts, with the arguments and variables of the Deployment, of which
 * only the keys in `config/cluster-keys.ts` are taken. Flags and variables of this command win. Says on standard error which
 * configuration it is. The connection stays open for the command.
 */
export async function clusterContext(
  words: CommonWords,
  surroundings: Surroundings,
  parse: ParseWords,
  { toleratesMistakes = false }: ClusterReading = {},
): Promise<Context> {
  const { note, controllerWords } = surroundings;
  const withoutMistakes = (error: unknown, own: Context): Context => {
    if (!toleratesMistakes || !(error instanceof ConfigurationError)) throw error;
    note(`the controller's configuration has a mistake, and the defaults count: ${error.problems.join('; ')}`);
    return { ...own, origin: 'unreadable' };
  };
  if (words.configFile !== undefined) return ownContext(words, surroundings);
  if (controllerWords !== undefined) {
    const its = await parse(controllerWords);
    note(`configuration: ${its.configFile ?? 'the arguments'} of the controller in this pod`);
    try {
      const context = await ownContext({ ...words, ...its, keys: { ...its.keys, ...words.keys } }, surroundings);
      return { ...context, origin: 'cluster' };
    } catch (error) {
      return withoutMistakes(error, await ownContext(words, surroundings));
    }
  }
  const own = await ownContext(words, surroundings);
  const clients = await openClients(own);
  try {
    const installation = words.installation ?? installationIn(clients.ownNamespace);
    const read = configuredIn(clients.client, installation, own, words, parse);
    return { ...(await read.catch((error: unknown) => withoutMistakes(error, own))), clients };
  } catch (error) {
    await clients.close();
    throw error;
  }
}

/** Returns the context with the configuration of the installation; with `own`, the user's, if there is none or it cannot be read. */
async function configuredIn(
  once: ApiClient,
  installation: Installation,
  own: Context,
  words: CommonWords,
  parse: ParseWords,
): Promise<Context> {
  const { note, environment, clock, signal } = own;
  const name = installationText(installation);
  const unreadable = (why: string): Context => {
    note(`configuration: defaults; ${why}`);
    return { ...own, origin: 'unreadable' };
  };
  const refused = (why: string) =>
    unreadable(`that of Deployment ${name} could not be read: ${why}; give it with --config`);
  // A server to which no connection is made is not asked again: its message should come at once.
  const may = (error: unknown) => isTemporary(error) && once.addresses().size > 0;
  const client = createRetryingClient(once, { clock, signal, may });
  const found = await findDeployed(client, installation, signal);
  if (found.kind === 'unreadable') return refused(found.why);
  if (found.kind === 'none') {
    note(`archaware is not installed here (no Deployment ${name}); configuration: defaults`);
    return { ...own, origin: 'defaults' };
  }
  const its = await parse(found.words);
  const read = its.configFile === undefined ? undefined : await found.readFile(its.configFile).catch(refusalOf);
  if (read instanceof ApiError) return refused(read.message);
  const deployment = `Deployment ${name}`;
  if (its.configFile !== undefined && read === undefined) {
    return unreadable(`${its.configFile} of ${deployment} is not in a ConfigMap: give it with --config`);
  }
  const file = read && parseConfig(`ConfigMap ${read.source}`, read.text);
  note(`configuration: ${file === undefined ? `arguments of ${deployment}` : `${file.name}, of ${deployment}`}`);
  const variables = Object.entries(found.environment).filter(([name]) => name.startsWith('ARCHAWARE_'));
  const { layers, leftOut } = takenFrom(
    { file, environment: Object.fromEntries(variables), flags: its.keys },
    hasLogins(own.config),
  );
  const stated = leftOut.filter((path) => MATTERS.includes(path) && own.sources.get(path) === 'default');
  if (stated.length > 0) {
    note(`not taken from the cluster: ${stated.join(', ')}; where it matters, give what this machine has with a flag`);
  }
  const { config, sources } = loadConfig({
    file: layers.file,
    environment: { ...layers.environment, ...environment },
    flags: { ...layers.flags, ...words.keys },
  });
  const namespace = config.leaderElection.namespace || installation.namespace;
  // Without the rules, the labels that they set would count as labels to remove.
  const loops = config.loops.filter((loop) => loop !== 'labels' || !stated.includes('nodeLabels.directory'));
  const leaderElection = { ...config.leaderElection, namespace };
  return { ...own, config: { ...config, loops, leaderElection }, sources, origin: 'cluster' };
}

/** Returns a 403; throws every other error. */
function refusalOf(error: unknown): ApiError {
  if (isForbidden(error)) return error;
  throw error;
}

/** Keys of the cluster that are never taken, and without which a lookup or a list of labels may differ from the controller's. */
const MATTERS: readonly string[] = [
  'registries.insecure',
  'registries.mirrors',
  'registries.containerdConfigDirectory',
  'registries.containersRegistriesConf',
  'registries.caFile',
  'registries.addresses.allow',
  'registries.addresses.deny',
  'credentials.dockerConfigFiles',
  'credentials.directory',
  'credentials.kubelet.config',
  'nodeLabels.directory',
];

/** Whether the user gave logins with flags or variables of this command. */
function hasLogins({ credentials: { dockerConfigFiles, directory, kubelet } }: Context['config']): boolean {
  return dockerConfigFiles.length > 0 || directory !== '' || kubelet.config !== '';
}

/** Whether an error says that there is no cluster, or none that answers. */
export function isAway(error: unknown): boolean {
  return error instanceof KubeconfigError || error instanceof ConnectionError;
}
