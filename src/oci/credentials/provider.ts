import { join } from 'node:path';
import { parseGoDuration } from '../../kit/duration.ts';
import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { isObject, parseObject } from '../../kit/json.ts';
import { createAnswers, type Question } from './answers.ts';
import type { Login } from './docker.ts';
import { matchCredentials } from './match.ts';
import { endedWith, ProgramError, programEnvironment, runProgram } from './process.ts';
import type { Provider } from './provider-config.ts';

export type ProviderPluginOptions = {
  readonly provider: Provider;
  readonly binDirectory: string;
  /** The limit for one run of the program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: Turns;
};

/** A kubelet image credential provider plug-in. It uses the controller's cloud identity, not the node's. */
export type ProviderPlugin = ReturnType<typeof createProviderPlugin>;

type Response = {
  readonly keyType: 'Image' | 'Registry' | 'Global';
  /** Milliseconds; absent: the default. */
  readonly duration: number | undefined;
  readonly logins: readonly Login[];
};

const MAX_OUTPUT = 1024 * 1024;
/** A key that equals no image and no registry, because neither contains a space. */
const GLOBAL = ' ';

export function createProviderPlugin({ provider, binDirectory, timeoutMs, now, turns }: ProviderPluginOptions) {
  const answers = createAnswers(now, turns);
  const patterns = provider.matchImages.map((pattern) => ({ pattern }));

  async function run(image: string, signal: AbortSignal) {
    const result = await runProgram({
      path: join(binDirectory, provider.name),
      args: provider.args,
      stdin: JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion: provider.apiVersion, image }),
      env: programEnvironment(provider.env),
      timeoutMs,
      signal,
      maxOutput: MAX_OUTPUT,
    });
    if (result.code !== 0) throw endedWith(result);
    const { keyType, duration, logins } = readResponse(result.stdout, provider.apiVersion);
    const key = keyType === 'Image' ? image : keyType === 'Registry' ? registryOf(image) : GLOBAL;
    return { logins, key, ttlMs: duration ?? provider.defaultCacheDuration };
  }

  return {
    name: provider.name,
    /**
     * Returns the logins that the plug-in has for an image; none if its `matchImages` does not match the image. An answer
     * is remembered for as long as it says, a failure for ten seconds; at most one run at a time for an image.
     *
     * @param image its name, without tag and digest, as the kubelet sends it
     * @throws ProgramError, or the signal's reason
     */
    async ask(image: string, signal: AbortSignal, askers: Askers): Promise<readonly Login[]> {
      // The rules for logins and for images are the same: host globs, ports, path prefixes.
      if (matchCredentials(patterns, image).length === 0) return [];
      return answers.ask(questionOf(image), signal, askers, (shared) => run(image, shared));
    },
    /** Forgets the answer with a login that the registry of the image refused, so that the plug-in is asked again. */
    refused: (image: string, login: Login): void => answers.refused(questionOf(image), login),
  };
}

function questionOf(image: string): Question {
  const registry = registryOf(image);
  return { keys: [image, registry, GLOBAL], registry };
}

function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? image;
}

/** @throws ProgramError */
function readResponse(stdout: string, apiVersion: string): Response {
  const refuse = (problem: string): ProgramError =>
    new ProgramError(`did not answer with a CredentialProviderResponse of ${apiVersion}: ${problem}`);
  const response = parseObject(stdout);
  if (response === undefined) throw refuse('not a JSON object');
  if (response.kind !== 'CredentialProviderResponse') throw refuse('another kind');
  if (response.apiVersion !== apiVersion) throw refuse('another apiVersion');
  const keyType = (['Image', 'Registry', 'Global'] as const).find((type) => type === response.cacheKeyType);
  if (keyType === undefined) throw refuse('cacheKeyType is not one of Image, Registry and Global');
  const text = response.cacheDuration ?? undefined;
  const duration = typeof text === 'string' ? parseGoDuration(text) : undefined;
  if (text !== undefined && duration === undefined) throw refuse('cacheDuration is not a valid duration');
  const auth = response.auth ?? {};
  if (!isObject(auth)) throw refuse('auth is not an object');
  const logins = Object.entries(auth).map(([pattern, entry], index): Login => {
    const { username = '', password = '' } = isObject(entry) ? entry : {};
    if (!isObject(entry) || typeof username !== 'string' || typeof password !== 'string') {
      throw refuse(`entry ${index + 1} of auth is not an object of username and password`);
    }
    return { pattern, username, password };
  });
  return { keyType, duration, logins };
}
