import { join } from 'node:path';
import * as z from 'zod';
import { parseGoDuration } from '../../kit/duration.ts';
import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { fieldOf, parseObject } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { LoginSource } from '../errors.ts';
import type { Login } from './docker.ts';
import { matchCredentials } from './match.ts';
import { endedWith, PROGRAM, ProgramError, programEnvironment, runProgram } from './process.ts';
import type { Provider } from './provider-config.ts';

/** A program of the operator that gives logins, with what it answered lately. */
export type CredentialProgram = ReturnType<typeof createProgram>;

export type ProgramOptions = {
  /** The limit for one run of a program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: Turns;
};

type Answer = { readonly until: number; readonly logins: readonly Login[]; readonly isRefused?: true };

/** Runs the program; returns what it answered, and for which of the keys, and how many milliseconds, that is remembered. */
type Run = (
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
function createProgram(source: LoginSource, { now, turns }: ProgramOptions, run: Run) {
  const answers = createLru<Answer>(MAX_ENTRIES);
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
export function createProviderPlugin(
  provider: Provider,
  binDirectory: string,
  options: ProgramOptions,
): CredentialProgram {
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
