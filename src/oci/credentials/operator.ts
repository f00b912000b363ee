import { constants } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import type { Askers } from '../../kit/fairness/askers.ts';
import { createTurns } from '../../kit/fairness/turns.ts';
import { oneAfterTheOther } from '../endpoints/operator-file.ts';
import type { CredentialProgram } from './answers.ts';
import { type DockerConfig, type Login, parseDockerConfig } from './docker.ts';
import { createCredentialHelper } from './helper.ts';
import { matchCredentials } from './match.ts';
import { ProgramError } from './process.ts';
import { createProviderPlugin } from './provider.ts';
import { mergeProviders, type Provider, parseProviders } from './provider-config.ts';
import { SourceError } from './source-error.ts';
import { isLoginFile, parseTomlLogin } from './toml.ts';

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

/** A plug-in of the kubelets. Those for the service accounts of pods are never run. */
type Plugin = { readonly provider: Provider; readonly program: CredentialProgram | undefined };

/** The text of a file, to notice changes, and the value that was parsed from it. */
type Read<T> = { readonly text: string; readonly value: T };

/** The logins from the operator's own files and programs. */
export function createOperatorCredentials(options: OperatorCredentialsOptions) {
  const { directory, kubelet, timeoutMs, now } = options;
  const { config } = kubelet;
  const dockerFiles = [...new Set(options.dockerConfigFiles)].filter((file) => file !== '');
  const reporter = createProgramReporter(options.onProblem);
  const running = { timeoutMs, now, turns: createTurns() };
  const helpers = new Map<string, CredentialProgram>();

  const dockers = createSource<Read<DockerConfig>>(
    'credentials.dockerConfigFiles',
    async () => dockerFiles,
    (file, last) =>
      readFileAs(file, last, (text) => {
        const parsed = parseDockerConfig(text);
        // The answers of the helpers that a changed file names may have changed too.
        helpers.clear();
        return parsed;
      }),
  );
  const tomls = createSource<Login>(
    'credentials.directory',
    async () => (await namesIn(directory)).filter(isLoginFile).map((name) => join(directory, name)),
    async (file) => parseTomlLogin(basename(file), await readText(file)),
  );
  const providers = createSource<Read<readonly Plugin[]>>(
    'credentials.kubelet.config',
    async () => [config],
    async (file, last) => {
      const read = await readProviders(file, last, (parsed) => {
        const before = new Map(last?.value.map(({ provider, program }) => [JSON.stringify(provider), program]));
        // A plug-in with an unchanged configuration keeps its remembered answers.
        return parsed.map((provider): Plugin => {
          const known = before.get(JSON.stringify(provider));
          const isNew = known === undefined && provider.isForPods !== true;
          return { provider, program: isNew ? createProviderPlugin(provider, kubelet.binDirectory, running) : known };
        });
      });
      await Promise.all(programsOf(read.value).map(({ name }) => checkProgram(name, kubelet.binDirectory)));
      return read;
    },
  );

  async function reloadAll(): Promise<SourceProblem[]> {
    const problems = await dockers.reload();
    if (directory !== '') problems.push(...(await tomls.reload(directory)));
    if (config !== '') problems.push(...(await providers.reload()));
    return problems;
  }

  function helperOf(name: string): CredentialProgram {
    const helper = helpers.get(name) ?? createCredentialHelper(name, running);
    helpers.set(name, helper);
    return helper;
  }

  /** Returns no logins if the program fails; the failure is reported. */
  async function ask(program: CredentialProgram, target: string, signal: AbortSignal, askers: Askers) {
    const { kind, name } = program;
    try {
      const logins = await program.ask(target, signal, askers);
      reporter.worked(name, target);
      return logins.map(
        (login): Login => ({
          ...login,
          source: { kind, name },
          onRefused: () => program.refused(target, login),
        }),
      );
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      reporter.failed(name, target, error.message);
      return [];
    }
  }

  return {
    /** The files and directories that {@link OperatorCredentials.reload} reads. */
    paths: [...dockerFiles, directory, config].filter((path) => path !== ''),

    /** Reads all files, for the first time or again; nothing is read before. */
    reload: oneAfterTheOther(reloadAll),

    /**
     * Returns the name of the plug-in with which kubelets pull an image as the pod's service account; undefined: there is none in the
     * configuration of plug-ins.
     */
    providerForPods(name: string): string | undefined {
      const matches = (pattern: string) => matchCredentials([{ pattern }], name).length > 0;
      return pluginsIn(providers)
        .map(({ provider }) => provider)
        .find(({ isForPods, matchImages }) => isForPods && matchImages.some(matches))?.name;
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
      const configs = [...dockers.values().values()].map(({ value }) => value);
      const named = new Set(configs.map((config) => config.helpers.get(host) ?? config.store ?? ''));
      const runs = [
        ...[...named].filter((helper) => helper !== '').map((helper) => ask(helperOf(helper), host, signal, askers)),
        ...programsOf(pluginsIn(providers)).map((plugin) => ask(plugin, name, signal, askers)),
      ];
      const ofFile = (file: string, logins: readonly Login[]): Login[] =>
        logins.map((login) => ({ ...login, source: { kind: 'file', name: basename(file) } }));
      const files = [
        ...[...dockers.values()].flatMap(([file, { value }]) => ofFile(file, value.logins)),
        ...[...tomls.values()].flatMap(([file, login]) => ofFile(file, [login])),
      ];
      const all = [...files, ...(await Promise.all(runs)).flat()];
      // Each login is matched alone: the caller, which sees every source, decides which of Docker Hub's names counts.
      return all.filter((login) => matchCredentials([login], name).length > 0);
    },
  };
}

type Source<T> = ReturnType<typeof createSource<T>>;

/** Files of the operator, and what was read from each. One that cannot be used keeps its previous content. */
function createSource<T>(
  key: SourceProblem['key'],
  list: () => Promise<readonly string[]>,
  read: (file: string, last: T | undefined) => Promise<T>,
) {
  let values: ReadonlyMap<string, T> = new Map();
  return {
    values: () => values,
    /** `place`: what cannot be read if the files cannot be listed. */
    async reload(place = ''): Promise<SourceProblem[]> {
      const files = await attempt(list);
      if (files instanceof SourceError) return [{ key, file: place, problem: files.message }];
      const problems: SourceProblem[] = [];
      const next = new Map<string, T>();
      for (const file of files) {
        const last = values.get(file);
        const found = await attempt(() => read(file, last));
        if (found instanceof SourceError) problems.push({ key, file, problem: found.message });
        const kept = found instanceof SourceError ? last : found;
        if (kept !== undefined) next.set(file, kept);
      }
      values = next;
      return problems;
    },
  };
}

function pluginsIn(providers: Source<Read<readonly Plugin[]>>): readonly Plugin[] {
  return [...providers.values().values()].flatMap(({ value }) => value);
}

function programsOf(plugins: readonly Plugin[]): CredentialProgram[] {
  return plugins.flatMap(({ program }) => program ?? []);
}

/** Returns the last result if the text is still the same. */
async function readFileAs<T>(file: string, last: Read<T> | undefined, parse: (text: string) => T): Promise<Read<T>> {
  const text = await readText(file);
  return text === last?.text ? last : { text, value: parse(text) };
}

/** Reads the configuration of plug-ins: a file, or the files of a directory in the order of their names, as the kubelet does. */
async function readProviders<T>(
  path: string,
  last: Read<T> | undefined,
  use: (providers: readonly Provider[]) => T,
): Promise<Read<T>> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw unreadable(error);
  });
  if (entries === undefined) return readFileAs(path, last, (text) => use(mergeProviders([parseProviders(text)])));
  const files = entries.filter((entry) => !entry.isDirectory() && /\.(?:json|ya?ml)$/.test(entry.name));
  if (files.length === 0) throw new SourceError('it has no file *.json, *.yaml or *.yml');
  const names = files.map(({ name }) => name).sort();
  const texts = await Promise.all(names.map((name) => of(name, () => readText(join(path, name)))));
  const text = JSON.stringify(texts);
  if (text === last?.text) return last;
  const each = texts.map((one, index) => of(names[index] ?? '', async () => parseProviders(one)));
  return { text, value: use(mergeProviders(await Promise.all(each))) };
}

/** Adds to an error of a file in which one of a directory it is. */
async function of<T>(name: string, work: () => Promise<T>): Promise<T> {
  const result = await attempt(work);
  if (result instanceof SourceError) throw new SourceError(`${name}: ${result.message}`);
  return result;
}

async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    throw unreadable(error);
  });
  return names.sort();
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
