import { constants } from 'node:fs';
import { access, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import type { Askers } from '../../kit/fairness/asking-namespaces.ts';
import { createTurns } from '../../kit/fairness/turns.ts';
import { printableAscii } from '../../kit/printable.ts';
import {
  createFiles,
  type FileProblem,
  oneAfterTheOther,
  parseToml,
  readText,
  reason,
} from '../endpoints/operator-file.ts';
import { type Login, matchCredentials, parseDockerConfig } from './docker.ts';
import { ProgramError } from './process.ts';
import {
  type CredentialProgram,
  createCredentialHelper,
  createProviderPlugin,
  mergeProviders,
  type Provider,
  parseProviders,
} from './programs.ts';

export type OperatorCredentialsOptions = {
  readonly dockerConfigFiles: readonly string[];
  /** The directory of TOML files; empty: none. */
  readonly directory: string;
  /** Empty: no plug-ins. */
  readonly kubelet: { readonly config: string; readonly binDirectory: string };
  /** The limit for one run of a helper or plug-in. */
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Called when a helper or plug-in fails in a different way than before; `source` is its name. */
  readonly onProblem: (source: string, problem: string) => void;
};

/** A file or directory that cannot be used; its previous content stays in use. */
type SourceProblem = FileProblem & {
  /** The key of the configuration. */
  readonly key: 'credentials.dockerConfigFiles' | 'credentials.directory' | 'credentials.kubelet.config';
};

/** The ending of a file with a login, in a directory of such files. */
const SUFFIX = '.toml';

/** The logins from the operator's own files and programs. */
export function createOperatorCredentials(options: OperatorCredentialsOptions) {
  const operator = createOperatorState(options);
  const { dockerFiles, dockers, tomls } = operator;
  return {
    /** The files and directories that {@link OperatorCredentials.reload} reads. */
    paths: [...dockerFiles, options.directory, options.kubelet.config].filter((path) => path !== ''),

    /** Reads all files, for the first time or again; nothing is read before. */
    reload: oneAfterTheOther(async (): Promise<SourceProblem[]> => {
      const of = (key: SourceProblem['key'], problems: FileProblem[]) => problems.map((each) => ({ key, ...each }));
      return [
        ...of('credentials.dockerConfigFiles', await dockers.reload()),
        ...of('credentials.directory', await tomls.reload()),
        ...of('credentials.kubelet.config', await reloadProviders(operator)),
      ];
    }),

    /**
     * Returns the name of the plug-in with which kubelets pull an image as the pod's service account; undefined: there is none in the
     * configuration of plug-ins.
     */
    providerForPods(name: string): string | undefined {
      const matches = (pattern: string) => matchCredentials([{ pattern }], name).length > 0;
      return operator.providers.find(({ isForPods, matchImages }) => isForPods && matchImages.some(matches))?.name;
    },

    /**
     * Returns every login that may match an image: from files, then helpers, then plug-ins; logins of one pattern stay in
     * this order. A program that fails is skipped.
     *
     * @param name the image's, as `host/repository`, without tag and digest
     * @param askers the namespaces for which it is asked: they take turns at the programs
     * @throws the signal's reason
     */
    async lookup(name: string, signal: AbortSignal, askers: Askers): Promise<readonly Login[]> {
      const host = name.split('/', 1)[0] ?? name;
      const configs = [...dockers.values().values()];
      const named = new Set(configs.map((config) => config.helpers.get(host) ?? config.store ?? ''));
      const runs = [
        ...[...named]
          .filter((helper) => helper !== '')
          .map((helper) => ask(operator, helperOf(operator, helper), host, signal, askers)),
        ...[...operator.plugins.values()].map((plugin) => ask(operator, plugin, name, signal, askers)),
      ];
      const ofFile = (file: string, logins: readonly Login[]): Login[] =>
        logins.map((login) => ({ ...login, source: { kind: 'file', name: basename(file) } }));
      const files = [
        ...[...dockers.values()].flatMap(([file, { logins }]) => ofFile(file, logins)),
        ...[...tomls.values()].flatMap(([file, login]) => ofFile(file, [login])),
      ];
      const all = [...files, ...(await Promise.all(runs)).flat()];
      // Each login is matched alone: the caller, which sees every source, decides which of Docker Hub's names counts.
      return all.filter((login) => matchCredentials([login], name).length > 0);
    },
  };
}

/** What the files say, and the programs that they name. */
type OperatorState = ReturnType<typeof createOperatorState>;

function createOperatorState(options: OperatorCredentialsOptions) {
  const { directory, kubelet, onProblem } = options;
  const dockerFiles = [...new Set(options.dockerConfigFiles)].filter((file) => file !== '');
  const helpers = new Map<string, CredentialProgram>();
  const texts = new Map<string, string>();
  const dockers = createFiles(
    'credentials.dockerConfigFiles',
    () => dockerFiles,
    async (file) => {
      const text = await readText(file);
      // The answers of the helpers that a changed file names may have changed too.
      if (texts.get(file) !== text) helpers.clear();
      texts.set(file, text);
      return parseDockerConfig(text);
    },
  );
  const tomls = createFiles(
    directory,
    async () =>
      (await readdir(directory))
        // Names that begin with a dot are not those of logins, such as `..data` in a mounted Secret.
        .filter((name) => name.endsWith(SUFFIX) && !name.startsWith('.'))
        .sort()
        .map((name) => join(directory, name)),
    async (file) => parseTomlLogin(basename(file), await readText(file)),
  );
  const kubelets = createFiles(
    kubelet.config,
    () => providerFiles(kubelet.config),
    async (file) => parseProviders(await readText(file)),
  );
  return {
    ...{ kubelet, onProblem, dockerFiles, dockers, tomls, kubelets, helpers },
    running: { timeoutMs: options.timeoutMs, now: options.now, turns: createTurns() },
    /** By program. A problem is reported again only if it changes, or after it had passed where it was last seen. */
    reported: new Map<string, { readonly target: string; readonly problem: string }>(),
    providers: [] as readonly Provider[],
    /** The programs of the providers by their configuration: one that is unchanged keeps its remembered answers. */
    plugins: new Map() as ReadonlyMap<string, CredentialProgram>,
  };
}

/** The files of the kubelet count only all together. */
async function reloadProviders(operator: OperatorState): Promise<FileProblem[]> {
  const { kubelets, running, plugins } = operator;
  const { config, binDirectory } = operator.kubelet;
  const problems = await kubelets.reload();
  if (config === '' || problems.length > 0) return problems;
  try {
    const merged = mergeProviders([...kubelets.values().values()]);
    const own = merged.filter(({ isForPods }) => isForPods !== true);
    await Promise.all(own.map(({ name }) => checkProgram(name, binDirectory)));
    const programs = own.map((provider) => {
      const key = JSON.stringify(provider);
      return [key, plugins.get(key) ?? createProviderPlugin(provider, binDirectory, running)] as const;
    });
    operator.providers = merged;
    operator.plugins = new Map(programs);
    return [];
  } catch (error) {
    return [{ file: config, problem: reason(error) }];
  }
}

function helperOf({ helpers, running }: OperatorState, name: string): CredentialProgram {
  const helper = helpers.get(name) ?? createCredentialHelper(name, running);
  helpers.set(name, helper);
  return helper;
}

/** Returns no logins if the program fails; the failure is reported. */
async function ask(
  operator: OperatorState,
  program: CredentialProgram,
  target: string,
  signal: AbortSignal,
  askers: Askers,
) {
  const { reported, onProblem } = operator;
  const { source } = program;
  try {
    const logins = await program.ask(target, signal, askers);
    if (reported.get(source.name)?.target === target) reported.delete(source.name);
    return logins.map((login): Login => ({ ...login, source, onRefused: () => program.refused(target, login) }));
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    const problem = error.message;
    if (reported.get(source.name)?.problem === problem) return [];
    reported.set(source.name, { target, problem });
    onProblem(source.name, problem);
    return [];
  }
}

/**
 * Parses a file with `user` and `secret`.
 *
 * @param name of the file, which names the registry: `docker.io.toml`
 * @throws Error
 */
export function parseTomlLogin(name: string, text: string): Login {
  const pattern = name.slice(0, -SUFFIX.length).toLowerCase();
  if (!/^(?:[a-z0-9*?-]+(?:\.[a-z0-9*?-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(pattern)) {
    throw new Error(`its name is not a host[:port] followed by ${SUFFIX}`);
  }
  const { user, secret, ...others } = parseToml(text);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new Error(`it has an unknown key "${printableAscii(unknown, 60)}"; expected user and secret`);
  }
  return { pattern, username: textOf('user', user), password: textOf('secret', secret) };
}

function textOf(key: string, value: unknown): string {
  if (value === undefined) throw new Error(`it has no ${key}`);
  if (typeof value !== 'string' || value === '') throw new Error(`its ${key} must be a string that is not empty`);
  return value;
}

/** The files of plug-ins: one, or those of a directory in the order of their names, as the kubelet reads them. */
async function providerFiles(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory() && /\.(?:json|ya?ml)$/.test(entry.name));
  if (files.length === 0) throw new Error('it has no file *.json, *.yaml or *.yml');
  return files.map(({ name }) => join(path, name)).sort();
}

/** @throws Error if the program cannot be run */
async function checkProgram(name: string, binDirectory: string): Promise<void> {
  if (binDirectory === '') throw new Error('it needs credentials.kubelet.binDirectory, which is empty');
  await access(join(binDirectory, name), constants.X_OK).catch((error: unknown) => {
    throw new Error(
      `the program of its provider "${name}" cannot be run from ${binDirectory} (${codeOf(error) || 'error'})`,
    );
  });
}
