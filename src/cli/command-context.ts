import { openClients } from '../app/connect.ts';
import { findDeployed } from '../app/deployed/find.ts';
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
import type { Installation } from '../kube/installation/installations.ts';
import { createRetryingClient, isTemporary } from '../kube/retry.ts';
import { APP_LABEL, DEPLOYMENT } from '../names.ts';
import { few } from '../placement/reasons.ts';

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
  return {
    ...surroundings,
    ...common,
    ...load(file),
    file: isWatched ? { name: configFile, load: () => load(readConfigFile(configFile)).config } : undefined,
    origin: configFile === undefined ? 'defaults' : 'file',
  };
}

type ClusterOptions = {
  /**
   * Whether the command goes on where several installations exist; the defaults apply then. `clean` looks for all controllers by
   * itself, and names the Deployments that only look like one.
   */
  readonly mayBeSeveral: boolean;
  readonly parse: (words: readonly string[]) => Promise<ConfigWords>;
};

/**
 * Loads the configuration of the installation in the cluster, unless `--config` names a file: in the controller's own pod the file
 * that it reads; elsewhere the ConfigMap that its Deployment mounts, with the arguments and variables of the Deployment, of which
 * only the keys in `config/cluster-keys.ts` are taken. Flags and variables of this command win. Says on standard error which
 * configuration it is. The connection stays open for the command.
 *
 * @throws ConfigurationError if there are several installations and `--installation` does not choose one
 */
export async function clusterContext(
  words: CommonWords,
  surroundings: Surroundings,
  options: ClusterOptions,
): Promise<Context> {
  const { note, controllerWords } = surroundings;
  if (words.configFile !== undefined) return ownContext(words, surroundings);
  if (controllerWords !== undefined) {
    const its = await options.parse(controllerWords);
    note(`configuration: ${its.configFile ?? 'the arguments'} of the controller in this pod`);
    const context = await ownContext({ ...words, ...its, keys: { ...its.keys, ...words.keys } }, surroundings);
    return { ...context, origin: 'cluster' };
  }
  const own = await ownContext(words, surroundings);
  const clients = await openClients(own);
  try {
    return { ...(await configuredIn(clients.client, own, words, options)), clients };
  } catch (error) {
    await clients.close();
    throw error;
  }
}

/** Returns the context with the configuration of the installation; with `own`, the user's, if there is none or it cannot be read. */
async function configuredIn(
  once: ApiClient,
  own: Context,
  words: CommonWords,
  options: ClusterOptions,
): Promise<Context> {
  const { note, environment, clock, signal } = own;
  const byDefault = (why: string, origin: 'defaults' | 'unreadable'): Context => {
    note(`configuration: defaults; ${why}`);
    return { ...own, origin };
  };
  const unreadable = (why: string) =>
    byDefault(
      `that of the installation could not be read: ${why}; give its namespace with --installation NAMESPACE, or its configuration with --config`,
      'unreadable',
    );
  // A server to which no connection is made is not asked again: its message should come at once.
  const may = (error: unknown) => isTemporary(error) && once.addresses().size > 0;
  const client = createRetryingClient(once, { clock, signal, may });
  const found = await findDeployed(client, words.installation, signal);
  if (found.strangers.length > 0 && !options.mayBeSeveral) {
    note(passedOver(found.strangers.map((name) => `Deployment ${name}`)));
  }
  switch (found.kind) {
    case 'several':
    case 'several-deployments': {
      const several = severalText(found);
      if (!options.mayBeSeveral) throw new ConfigurationError([several]);
      return byDefault(several, 'unreadable');
    }
    case 'unreadable':
      return unreadable(found.why);
    case 'none':
      return byDefault(noneText(found.installation), 'defaults');
    case 'found':
      break;
    default:
      return found satisfies never;
  }
  const { controller, readFile } = found.deployed;
  const its = await options.parse(controller.words);
  const read = its.configFile === undefined ? undefined : await readFile(its.configFile).catch(refusalOf);
  if (read instanceof ApiError) return unreadable(read.message);
  const deployment = `Deployment ${controller.namespace}/${controller.name}`;
  if (its.configFile !== undefined && read === undefined) {
    const why = `${its.configFile} of ${deployment} is not in a ConfigMap: give it with --config`;
    return byDefault(why, 'unreadable');
  }
  const file = read && parseConfig(`ConfigMap ${read.source}`, read.text);
  note(`configuration: ${file === undefined ? `arguments of ${deployment}` : `${file.name}, of ${deployment}`}`);
  const variables = Object.entries(controller.environment).filter(([name]) => name.startsWith('ARCHAWARE_'));
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
  const namespace = config.leaderElection.namespace || controller.namespace;
  // Without the rules, the labels that they set would count as labels to remove.
  const loops = config.loops.filter((loop) => loop !== 'labels' || !leftOut.includes('nodeLabels.directory'));
  return {
    ...own,
    config: { ...config, loops, leaderElection: { ...config.leaderElection, namespace } },
    sources,
    origin: 'cluster',
  };
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

function severalText(
  found: { namespaces: readonly string[] } | { namespace: string; names: readonly string[] },
): string {
  return 'namespaces' in found
    ? `archaware is installed more than once in this cluster: in the namespaces ${few(found.namespaces)}; choose one with --installation, or give its configuration with --config`
    : `several Deployments in ${found.namespace} run as archaware: ${few(found.names)}; give the configuration with --config`;
}

function noneText(installation: Installation | undefined): string {
  if (installation === undefined)
    return `no ClusterRoleBinding labelled ${APP_LABEL}=${DEPLOYMENT} names a service account`;
  const { namespace, accounts } = installation;
  if (accounts === undefined) return `no Deployment labelled ${APP_LABEL}=${DEPLOYMENT} in namespace ${namespace}`;
  return `no Deployment in namespace ${namespace} runs as the service account ${[...accounts].join(' or ')}`;
}

/** Returns the line about objects that look like archaware's and are no installation's. `names`: `Deployment shop/web`. */
export function passedOver(names: readonly string[]): string {
  const verb = names.length === 1 ? 'looks like' : 'look like';
  return `passed over: ${few(names)} ${verb} archaware, but no ClusterRoleBinding of archaware names their service account`;
}

/** Whether an error says that there is no cluster, or none that answers. */
export function isAway(error: unknown): boolean {
  return error instanceof KubeconfigError || error instanceof ConnectionError;
}
