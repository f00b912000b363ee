import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import type { Askers } from '../../kit/fairness/askers.ts';
import { createTurns } from '../../kit/fairness/turns.ts';
import { oneAfterTheOther } from '../endpoints/operator-file.ts';
import { type DockerConfig, type Login, parseDockerConfig } from './docker.ts';
import { createCredentialHelpers } from './helper.ts';
import { matchCredentials } from './match.ts';
import { ProgramError } from './process.ts';
import { createProviderPlugin, type ProviderPlugin } from './provider.ts';
import { mergeProviders, type Provider, parseProviders } from './provider-config.ts';
import { SourceError } from './source-error.ts';
import { readTomlDirectory } from './toml.ts';

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
type SourceProblem = {
  /** The key of the configuration. */
  readonly key: 'credentials.dockerConfigFiles' | 'credentials.directory' | 'credentials.kubelet.config';
  readonly file: string;
  /** Contains nothing of a secret. */
  readonly problem: string;
};

/** The text of a file, to notice changes, and the value that was parsed from it. */
type Read<T> = { readonly text: string; readonly value: T };

/** The logins from the operator's own files and programs. */
export function createOperatorCredentials(options: OperatorCredentialsOptions) {
  const { directory, kubelet, timeoutMs, now } = options;
  const dockerFiles = [...new Set(options.dockerConfigFiles)].filter((file) => file !== '');
  const programs = createProgramReporter(options.onProblem);

  let dockers = new Map<string, Read<DockerConfig>>();
  let tomls = new Map<string, Login>();
  let providers: Read<readonly Provider[]> | undefined;
  let plugins: readonly ProviderPlugin[] = [];
  const turns = createTurns();
  let helpers = createCredentialHelpers({ timeoutMs, now, turns });

  async function reloadDocker(): Promise<SourceProblem[]> {
    const problems: SourceProblem[] = [];
    const next = new Map<string, Read<DockerConfig>>();
    for (const file of dockerFiles) {
      const last = dockers.get(file);
      const read = await attempt(() => readFileAs(file, last, parseDockerConfig));
      if (read instanceof SourceError) {
        problems.push({ key: 'credentials.dockerConfigFiles', file, problem: read.message });
      }
      const kept = read instanceof SourceError ? last : read;
      if (kept !== undefined) next.set(file, kept);
    }
    // If a file changed, the answers of the helpers that it names may have changed too.
    const isChanged = dockerFiles.some((file) => next.get(file) !== dockers.get(file));
    if (isChanged) helpers = createCredentialHelpers({ timeoutMs, now, turns });
    dockers = next;
    return problems;
  }

  async function reloadDirectory(): Promise<SourceProblem[]> {
    if (directory === '') return [];
    const key = 'credentials.directory';
    const entries = await attempt(() => readTomlDirectory(directory));
    if (entries instanceof SourceError) return [{ key, file: directory, problem: entries.message }];
    const next = new Map<string, Login>();
    const problems: SourceProblem[] = [];
    for (const entry of entries) {
      const login = 'login' in entry ? entry.login : tomls.get(entry.file);
      if (login !== undefined) next.set(entry.file, login);
      if ('error' in entry) problems.push({ key, file: entry.file, problem: entry.error.message });
    }
    tomls = next;
    return problems;
  }

  async function reloadProviders(): Promise<SourceProblem[]> {
    const file = kubelet.config;
    if (file === '') return [];
    const read = await attempt(async () => {
      const parsed = await readProviders(file, providers);
      // The others are never run.
      await Promise.all(runnable(parsed.value).map(({ name }) => checkProgram(name, kubelet.binDirectory)));
      return parsed;
    });
    if (read instanceof SourceError) {
      return [{ key: 'credentials.kubelet.config', file, problem: read.message }];
    }
    const before = new Map(
      runnable(providers?.value ?? []).map((provider, index) => [JSON.stringify(provider), plugins[index]]),
    );
    providers = read;
    // A plug-in with an unchanged configuration keeps its remembered answers.
    plugins = runnable(read.value).map(
      (provider) =>
        before.get(JSON.stringify(provider)) ??
        createProviderPlugin({ provider, binDirectory: kubelet.binDirectory, timeoutMs, now, turns }),
    );
    return [];
  }

  async function reloadAll(): Promise<SourceProblem[]> {
    return [...(await reloadDocker()), ...(await reloadDirectory()), ...(await reloadProviders())];
  }

  /** Returns no logins if the program fails; the failure is reported. */
  async function ask(
    kind: 'helper' | 'plug-in',
    source: string,
    target: string,
    work: () => Promise<readonly Login[]>,
  ): Promise<readonly Login[]> {
    try {
      const logins = await work();
      programs.worked(source, target);
      return logins.map((login) => ({ ...login, source: { kind, name: source } }));
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      programs.failed(source, target, error.message);
      return [];
    }
  }

  return {
    /** The files and directories that {@link OperatorCredentials.reload} reads. */
    paths: [...dockerFiles, directory, kubelet.config].filter((path) => path !== ''),

    /** Reads all files, for the first time or again; nothing is read before. */
    reload: oneAfterTheOther(reloadAll),

    /**
     * Returns the name of the plug-in with which kubelets pull an image as the pod's service account; undefined: there is none in the
     * configuration of plug-ins.
     */
    providerForPods(name: string): string | undefined {
      const matches = (pattern: string) => matchCredentials([{ pattern }], name).length > 0;
      return providers?.value.find(({ isForPods, matchImages }) => isForPods && matchImages.some(matches))?.name;
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
      const configs = [...dockers.values()].map(({ value }) => value);
      const asked = helpers;
      const named = configs.map((config) => config.helpers.get(host) ?? config.store ?? '');
      const runs = [
        ...[...new Set(named)]
          .filter((helper) => helper !== '')
          .map((helper) =>
            ask('helper', `docker-credential-${helper}`, host, async () => {
              const login = await asked.ask(helper, host, signal, askers);
              return login === undefined ? [] : [{ ...login, onRefused: () => asked.refused(helper, host, login) }];
            }),
          ),
        ...plugins.map((plugin) =>
          ask('plug-in', plugin.name, name, async () =>
            (await plugin.ask(name, signal, askers)).map((login) => ({
              ...login,
              onRefused: () => plugin.refused(name, login),
            })),
          ),
        ),
      ];
      const ofFile = (file: string, logins: readonly Login[]): Login[] =>
        logins.map((login) => ({ ...login, source: { kind: 'file', name: basename(file) } }));
      const files = [
        ...[...dockers].flatMap(([file, { value }]) => ofFile(file, value.logins)),
        ...[...tomls].flatMap(([file, login]) => ofFile(file, [login])),
      ];
      const all = [...files, ...(await Promise.all(runs)).flat()];
      // Each login is matched alone: the caller, which sees every source, decides which of Docker Hub's names counts.
      return all.filter((login) => matchCredentials([login], name).length > 0);
    },
  };
}

function runnable(providers: readonly Provider[]): Provider[] {
  return providers.filter(({ isForPods }) => isForPods !== true);
}

/** Returns the last result if the text is still the same. */
async function readFileAs<T>(file: string, last: Read<T> | undefined, parse: (text: string) => T): Promise<Read<T>> {
  const text = await readText(file);
  return text === last?.text ? last : { text, value: parse(text) };
}

/** Reads the configuration of plug-ins: a file, or the files of a directory in the order of their names, as the kubelet does. */
async function readProviders(path: string, last: Read<readonly Provider[]> | undefined) {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw unreadable(error);
  });
  if (entries === undefined) return readFileAs(path, last, (text) => mergeProviders([parseProviders(text)]));
  const files = entries.filter((entry) => !entry.isDirectory() && /\.(?:json|ya?ml)$/.test(entry.name));
  if (files.length === 0) throw new SourceError('it has no file *.json, *.yaml or *.yml');
  const names = files.map(({ name }) => name).sort();
  const texts = await Promise.all(names.map((name) => of(name, () => readText(join(path, name)))));
  const text = JSON.stringify(texts);
  if (text === last?.text) return last;
  const each = texts.map((one, index) => of(names[index] ?? '', async () => parseProviders(one)));
  return { text, value: mergeProviders(await Promise.all(each)) };
}

/** Adds to an error of a file in which one of a directory it is. */
async function of<T>(name: string, work: () => Promise<T>): Promise<T> {
  const result = await attempt(work);
  if (result instanceof SourceError) throw new SourceError(`${name}: ${result.message}`);
  return result;
}

function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw unreadable(error);
  });
}

function unreadable(error: unknown): SourceError {
  return new SourceError(`it cannot be read (${codeOf(error) || 'error'})`);
}

/** @throws SourceError */
async function checkProgram(name: string, binDirectory: string): Promise<void> {
  if (binDirectory === '') throw new SourceError('it needs credentials.kubelet.binDirectory, which is empty');
  await access(join(binDirectory, name), constants.X_OK).catch((error: unknown) => {
    throw new SourceError(
      `the program of its provider "${name}" cannot be run from ${binDirectory} (${codeOf(error) || 'error'})`,
    );
  });
}

async function attempt<T>(work: () => Promise<T>): Promise<T | SourceError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceError) return error;
    throw error;
  }
}

/**
 * Creates a reporter that reports a program's problem once: again only if the problem changes, or after it had passed
 * where it was last seen.
 */
function createProgramReporter(report: (source: string, problem: string) => void) {
  const last = new Map<string, { readonly target: string; readonly problem: string }>();
  return {
    failed(source: string, target: string, problem: string): void {
      if (last.get(source)?.problem === problem) return;
      last.set(source, { target, problem });
      report(source, problem);
    },
    worked(source: string, target: string): void {
      if (last.get(source)?.target === target) last.delete(source);
    },
  };
}
