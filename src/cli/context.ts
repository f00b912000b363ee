import { connect } from '../app/connect.ts';
import type { Context, Surroundings } from '../app/context.ts';
import { findDeployed } from '../app/deployed/find.ts';
import { withLocalFiles } from '../app/deployed/local-files.ts';
import { type ConfigFile, parseConfig, readConfigFile, STANDARD_INPUT } from '../config/file.ts';
import { loadConfig } from '../config/load.ts';
import { ConfigurationError } from '../config/problems.ts';
import { KubeconfigError } from '../kube/access.ts';
import { ConnectionError } from '../kube/errors.ts';
import { APP_LABEL, DEPLOYMENT } from '../names.ts';

/** The part of a command line that a configuration is made of. */
export type ConfigWords = {
  /** The values of flags that are configuration keys. */
  readonly keys: Readonly<Record<string, string>>;
  /** The value of `--config`. */
  readonly configFile: string | undefined;
};

/** The part of a command line that every command understands. */
export type CommonWords = ConfigWords & Pick<Context, 'kubeconfig' | 'context' | 'output'>;

/** Loads the configuration from the command line, the environment and the file of `--config`. Throws ConfigurationError. */
export function ownContext(words: CommonWords, surroundings: Surroundings): Context {
  const { keys, configFile, ...common } = words;
  const { environment, note, readInput } = surroundings;
  const load = (file: ConfigFile | undefined) => loadConfig({ file, environment, flags: keys });
  const file = configFile === undefined ? undefined : readConfigFile(configFile, readInput);
  if (file?.note !== undefined) note(`${file.name}: ${file.note}`);
  // Standard input cannot be read again.
  const isWatched = configFile !== undefined && configFile !== STANDARD_INPUT;
  return {
    ...surroundings,
    ...common,
    ...load(file),
    file: isWatched ? { name: configFile, load: () => load(readConfigFile(configFile, readInput)).config } : undefined,
    origin: configFile === undefined ? 'defaults' : 'file',
  };
}

/**
 * Loads the configuration of the controller that runs in the cluster, unless `--config` names a file: in the controller's own pod
 * the file that it reads, elsewhere the ConfigMap that its Deployment mounts, with the arguments and variables of the Deployment.
 * Flags and variables of this command win. Says on standard error which configuration it is.
 *
 * @throws ConfigurationError if there are several Deployments and `namespace` does not choose one
 */
export async function clusterContext(
  words: CommonWords,
  surroundings: Surroundings,
  options: {
    readonly namespace: string | undefined;
    /** Whether several Deployments are no error: the defaults apply then. */
    readonly mayBeSeveral: boolean;
    readonly parse: (words: readonly string[]) => Promise<ConfigWords>;
  },
): Promise<Context> {
  const { note, controllerWords } = surroundings;
  if (words.configFile !== undefined) return ownContext(words, surroundings);
  if (controllerWords !== undefined) {
    const its = await options.parse(controllerWords);
    note(`configuration: ${its.configFile ?? 'the arguments'} of the controller in this pod`);
    const context = ownContext({ ...words, ...its, keys: { ...its.keys, ...words.keys } }, surroundings);
    return { ...context, origin: 'cluster' };
  }
  const own = ownContext(words, surroundings);
  const { client, close } = await connect(own);
  try {
    const found = await findDeployed(client, options.namespace, surroundings.signal);
    if (found.kind === 'several') {
      const several = `archaware runs more than once in this cluster: Deployments ${found.names.join(', ')}; choose one with --namespace, or give its configuration with --config`;
      if (!options.mayBeSeveral) throw new ConfigurationError([several]);
      note(`configuration: defaults; ${several}`);
      return { ...own, origin: 'unreadable' };
    }
    if (found.kind !== 'found') {
      const why =
        found.kind === 'unreadable'
          ? `the cluster's could not be read: ${found.why}`
          : `no Deployment labelled ${APP_LABEL}=${DEPLOYMENT} found`;
      note(`configuration: defaults; ${why}`);
      return { ...own, origin: found.kind === 'unreadable' ? 'unreadable' : 'defaults' };
    }
    const { controller, files, sources } = found.deployed;
    const its = await options.parse(controller.words);
    const text = its.configFile === undefined ? undefined : files.get(its.configFile);
    const source = its.configFile === undefined ? undefined : sources.get(its.configFile);
    const deployment = `Deployment ${controller.namespace}/${controller.name}`;
    if (its.configFile !== undefined && text === undefined) {
      note(`configuration: defaults; ${its.configFile} of ${deployment} is not in a ConfigMap: give it with --config`);
      return { ...own, origin: 'unreadable' };
    }
    const file = text === undefined ? undefined : parseConfig(`ConfigMap ${source}`, text);
    const variables = Object.entries(controller.environment).filter(([name]) => name.startsWith('ARCHAWARE_'));
    const { config, sources: keySources } = loadConfig({
      file,
      environment: { ...Object.fromEntries(variables), ...surroundings.environment },
      flags: { ...its.keys, ...words.keys },
    });
    note(`configuration: ${file === undefined ? `arguments of ${deployment}` : `${file.name}, of ${deployment}`}`);
    const { config: local, notes } = withLocalFiles(config, files);
    for (const line of notes) note(line);
    const { leaderElection } = local;
    const namespace = leaderElection.namespace || controller.namespace;
    return {
      ...own,
      config: { ...local, leaderElection: { ...leaderElection, namespace } },
      sources: keySources,
      origin: 'cluster',
    };
  } finally {
    await close();
  }
}

/** Whether an error says that there is no cluster, or none that answers. */
export function isAway(error: unknown): boolean {
  return error instanceof KubeconfigError || error instanceof ConnectionError;
}
