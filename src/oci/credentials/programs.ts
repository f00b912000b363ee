import { join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import * as z from 'zod';
import { parseGoDuration } from '../../kit/duration.ts';
import type { Askers } from '../../kit/fairness/asking-namespaces.ts';
import type { QueueTurns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { fieldOf, parseObject } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { LoginSource } from '../errors.ts';
import { isPattern, type Login, matchCredentials } from './docker.ts';
import { endedWith, PROGRAM, ProgramError, programEnvironment, runProgram } from './process.ts';

const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'];
const CONFIG_V1 = 'kubelet.config.k8s.io/v1';
const CONFIG_KIND = 'CredentialProviderConfig';

// Each message follows the path of its field.
const text = z.string(' must be a string');
const listOf = <T extends z.ZodType>(item: T, items: string) =>
  z
    .array(item, ` must be a list of ${items}`)
    .nullish()
    .transform((list) => list ?? []);
const oneOf = (expected: readonly string[]) =>
  z.enum(expected, {
    error: ({ input }) => {
      const got = typeof input === 'string' ? `"${printableAscii(input, 60)}"` : 'a value that is not a string';
      return `: got ${got}, expected ${expected.join(' or ')}`;
    },
  });
const objectOf = <T extends z.ZodRawShape>(shape: T, kind = 'an object') =>
  z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === 'unrecognized_keys'
        ? ` has an unknown field "${printableAscii(String(keys[0]), 60)}"`
        : ` is not ${kind}`,
  });

const NO_IMAGES = ' must be a list with at least one entry';
const NO_DURATION = ' must be a duration such as 12h or 5m30s';
const PROVIDER = objectOf({
  apiVersion: oneOf(VERSIONS.map((version) => `credentialprovider.kubelet.k8s.io/${version}`)),
  name: text.regex(
    /^(?!\.{1,2}$)[^\s/\\\0]+$/,
    ' must be the name of a program in the directory of binaries, without a path',
  ),
  matchImages: z
    .array(
      text.refine(isPattern, {
        error: ({ input }) =>
          `: got "${printableAscii(String(input), 60)}", expected a pattern of images' names such as *.example.com/team`,
      }),
      NO_IMAGES,
    )
    .min(1, NO_IMAGES),
  // In milliseconds; for answers that name no duration.
  defaultCacheDuration: text.transform(parseGoDuration).pipe(z.number(NO_DURATION).min(0, NO_DURATION)),
  args: listOf(text, 'strings'),
  env: listOf(
    objectOf({ name: text.regex(/^[^=\0]+$/, ' is not a valid name of a variable'), value: text.nullish() }),
    'name and value',
  ).transform((list) => Object.fromEntries(list.map(({ name, value }) => [name, value ?? '']))),
  // Only the kubelet reads what is in it.
  tokenAttributes: z.unknown().optional(),
});

/** A kubelet image credential provider plug-in, as the configuration file names it. */
export type Provider = Omit<z.infer<typeof PROVIDER>, 'tokenAttributes'> & {
  /**
   * Whether kubelets give it a token of the pod's service account (`tokenAttributes`, KEP-4412: beta and on by default since
   * Kubernetes 1.34). Archaware has no such token, so it never runs the program; it only names it as the reason of a refusal.
   */
  readonly isForPods?: true;
};

const CONFIG = objectOf(
  {
    kind: oneOf([CONFIG_KIND]),
    apiVersion: oneOf(VERSIONS.map((version) => `kubelet.config.k8s.io/${version}`)),
    providers: listOf(PROVIDER, 'providers'),
  },
  `a ${CONFIG_KIND}`,
);

/**
 * Returns the providers of all files of a configuration, in the order of the files.
 *
 * @throws Error if there is none, or if two have the same name
 */
export function mergeProviders(files: readonly (readonly Provider[])[]): Provider[] {
  const providers = files.flat();
  if (providers.length === 0) throw new Error('providers must be a list with at least one entry');
  const names = providers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`providers: the name "${twice}" is given twice`);
  return providers;
}

/**
 * Parses a file with a `CredentialProviderConfig` of kubelet.config.k8s.io, YAML or JSON, as strictly as the kubelet does in what
 * archaware uses of it (pkg/credentialprovider/plugin/config.go). A file alone must have a provider: {@link mergeProviders}.
 *
 * @throws Error naming the field
 */
export function parseProviders(source: string): Provider[] {
  const { data, error } = CONFIG.safeParse(parseYaml(source));
  if (data === undefined) {
    const unknown = error.issues.find(({ code }) => code === 'unrecognized_keys');
    const { path = [], message = '' } = unknown ?? error.issues[0] ?? {};
    throw new Error(`${path.length === 0 ? 'it' : z.core.toDotPath(path)}${message}`);
  }
  return data.providers.map(({ tokenAttributes, ...provider }, index) => {
    if (tokenAttributes !== undefined && data.apiVersion !== CONFIG_V1) {
      throw new Error(`providers[${index}] has an unknown field "tokenAttributes"`);
    }
    return { ...provider, ...((tokenAttributes ?? undefined) === undefined ? {} : { isForPods: true }) };
  });
}

function parseYaml(source: string): unknown {
  const lineCounter = new LineCounter();
  let problem: string;
  try {
    const document = parseDocument(source, { lineCounter, prettyErrors: false, logLevel: 'error' });
    const [error] = document.errors;
    if (error === undefined) return document.toJS({ maxAliasCount: 100 });
    // The parser's own message may quote the file.
    problem = ` (line ${lineCounter.linePos(error.pos[0]).line}: ${error.code})`;
  } catch {
    // The parser runs out of stack on some nested texts, and refuses to follow some aliases.
    problem = ': its aliases cannot be followed, or it is nested too deeply';
  }
  throw new Error(`it is not valid YAML${problem}`);
}

/** A program of the operator that gives logins, with what it answered lately. */
export type CredentialProgram = ReturnType<typeof createProgram>;

export type ProgramOptions = {
  /** The limit for one run of a program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: QueueTurns;
};

type ProgramAnswer = { readonly until: number; readonly logins: readonly Login[]; readonly isRefused?: true };

/** Runs the program; returns what it answered, and for which of the keys, and how many milliseconds, that is remembered. */
type ProgramRun = (
  target: string,
  signal: AbortSignal,
) => Promise<{ readonly logins: readonly Login[]; readonly key: string; readonly ttlMs: number }>;

/** The key of an answer for everything. It equals no image and no registry, because neither contains a space. */
const GLOBAL = ' ';

const HELPER_TTL = 60_000;
const FAILURE_TTL = 10_000;
/** Milliseconds between the calls of a program for a registry that refuses its answers: it may be wrong for good. */
const PAUSE = 30_000;
const MAX_ENTRIES = 10_000;
/** The name under which Docker's clients have stored logins for Docker Hub since their first version. */
const HUB_SERVER = 'https://index.docker.io/v1/';
/** docker-credential-helpers, credentials/error.go: this text is a normal answer of the protocol, not an error. */
const NOT_FOUND = 'credentials not found in native keychain';
/** The user name that marks a password as an identity token. */
const TOKEN_USER = '<token>';

/**
 * Remembers what a program answered for as long as it says, and its failures for ten seconds. There is at most one run at a time for
 * a target: the name of an image, or a host[:port].
 */
function createProgram(source: LoginSource, { now, turns }: ProgramOptions, run: ProgramRun) {
  const answers = createLru<ProgramAnswer>(MAX_ENTRIES);
  const failures = createLru<{ readonly until: number; readonly error: ProgramError }>(MAX_ENTRIES);
  const runs = createFlights<readonly Login[]>();
  /** When the program may be called next for a registry because of a refusal. */
  const next = createLru<number>(MAX_ENTRIES);
  const after = (registry: string, time: number): number => Math.max(next.get(registry) ?? 0, time);
  const keysOf = (target: string): readonly string[] => [target, registryOf(target), GLOBAL];

  function remembered(target: string): readonly Login[] | undefined {
    const held = keysOf(target).map((key) => answers.get(key));
    return held.find((answer) => answer !== undefined && answer.until > now())?.logins;
  }

  async function call(target: string, signal: AbortSignal): Promise<readonly Login[]> {
    const registry = registryOf(target);
    next.set(registry, after(registry, now() + PAUSE));
    try {
      const { logins, key, ttlMs } = await run(target, signal);
      if (ttlMs > 0) answers.set(key, { until: now() + ttlMs, logins });
      return logins;
    } catch (error) {
      if (error instanceof ProgramError) failures.set(target, { until: now() + FAILURE_TTL, error });
      throw error;
    }
  }

  return {
    source,
    /** @throws ProgramError, or the signal's reason */
    async ask(target: string, signal: AbortSignal, askers: Askers): Promise<readonly Login[]> {
      const known = remembered(target);
      if (known !== undefined) return known;
      const failure = failures.get(target);
      if (failure !== undefined && failure.until > now()) throw failure.error;
      // Checked again when the turn has come: the answer for another target may have been one for this, too.
      const work = async (shared: AbortSignal) => remembered(target) ?? call(target, shared);
      return runs.join(target, signal, (shared, all) => turns.run(all, PROGRAM, shared, () => work(shared)), askers);
    },
    /** Forgets the answers with a login that the registry refused, so that the program is asked again. */
    refused(target: string, login: Login): void {
      const registry = registryOf(target);
      for (const key of keysOf(target)) {
        const held = answers.get(key);
        if (held?.logins.includes(login) !== true || held.isRefused === true) continue;
        const end = after(registry, now());
        next.set(registry, end + PAUSE);
        answers.set(key, { ...held, isRefused: true, until: Math.min(held.until, end) });
      }
    },
  };
}

function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? image;
}

/** One of Docker's credential helpers: a program named `docker-credential-<name>` in PATH. It is asked for a host[:port]. */
export function createCredentialHelper(helper: string, options: ProgramOptions): CredentialProgram {
  const name = `docker-credential-${helper}`;
  return createProgram({ kind: 'helper', name }, options, async (host, signal) => {
    const stdin = host === 'docker.io' ? HUB_SERVER : host;
    const { timeoutMs } = options;
    const result = await runProgram({ path: name, args: ['get'], stdin, env: programEnvironment(), timeoutMs, signal });
    const isUnknown = result.code !== 0 && result.stdout.trim() === NOT_FOUND;
    if (result.code !== 0 && !isUnknown) throw endedWith(result);
    return { logins: isUnknown ? [] : readAnswer(result.stdout, host), key: host, ttlMs: HELPER_TTL };
  });
}

/** @throws ProgramError */
function readAnswer(stdout: string, host: string): Login[] {
  const answer = parseObject(stdout) ?? {};
  const [username, secret] = [fieldOf(answer, 'Username'), fieldOf(answer, 'Secret')];
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw new ProgramError('did not answer with a JSON object of Username and Secret');
  }
  if (username === '' && secret === '') return [];
  if (username === TOKEN_USER) return [{ pattern: host, username: '', password: '', identityToken: secret }];
  return [{ pattern: host, username, password: secret }];
}

/**
 * A kubelet image credential provider plug-in. It is asked for an image's name, without tag and digest, as by the kubelet. It uses the
 * controller's cloud identity, not the node's.
 */
export function createProviderPlugin(provider: Provider, binDirectory: string, options: ProgramOptions) {
  const { name, apiVersion, args, env } = provider;
  const patterns = provider.matchImages.map((pattern) => ({ pattern }));
  const program = createProgram({ kind: 'plug-in', name }, options, async (image, signal) => {
    const result = await runProgram({
      path: join(binDirectory, name),
      args,
      stdin: JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, image }),
      env: programEnvironment(env),
      timeoutMs: options.timeoutMs,
      signal,
    });
    if (result.code !== 0) throw endedWith(result);
    const { cacheKeyType, cacheDuration, auth } = readResponse(result.stdout, apiVersion);
    const key = { Image: image, Registry: registryOf(image), Global: GLOBAL }[cacheKeyType];
    const logins = Object.entries(auth ?? {}).map(([pattern, login]): Login => ({ pattern, ...login }));
    return { logins, key, ttlMs: cacheDuration ?? provider.defaultCacheDuration };
  });
  // The rules for logins and for images are the same: host globs, ports, path prefixes.
  const ask: CredentialProgram['ask'] = async (image, ...more) =>
    matchCredentials(patterns, image).length === 0 ? [] : program.ask(image, ...more);
  return { ...program, ask };
}

/** @throws ProgramError */
function readResponse(stdout: string, apiVersion: string) {
  const duration = z.string().transform(parseGoDuration).pipe(z.number('not a valid duration'));
  const login = z.object({ username: z.string().default(''), password: z.string().default('') });
  const response = z.object({
    kind: z.literal('CredentialProviderResponse'),
    apiVersion: z.literal(apiVersion),
    cacheKeyType: z.enum(['Image', 'Registry', 'Global']),
    cacheDuration: duration.nullish(),
    auth: z.record(z.string(), login).nullish(),
  });
  const { data, error } = response.safeParse(parseObject(stdout));
  if (data !== undefined) return data;
  // zod names what is expected, never what is there.
  const { path = [], message = '' } = error.issues[0] ?? {};
  const problem = path.length === 0 ? 'not a JSON object' : `${z.core.toDotPath(path)}: ${message}`;
  throw new ProgramError(
    `did not answer with a CredentialProviderResponse of ${apiVersion}: ${printableAscii(problem, 200)}`,
  );
}
