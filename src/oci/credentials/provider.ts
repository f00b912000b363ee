import { join } from 'node:path';
import { parseGoDuration } from '../../kit/duration.ts';
import { isObject, parseObject } from '../../kit/json.ts';
import { type CredentialProgram, createAnswers, GLOBAL, type ProgramOptions, registryOf } from './answers.ts';
import type { Login } from './docker.ts';
import { matchCredentials } from './match.ts';
import { endedWith, ProgramError, programEnvironment, runProgram } from './process.ts';
import type { Provider } from './provider-config.ts';

type Response = {
  readonly keyType: 'Image' | 'Registry' | 'Global';
  /** Milliseconds; absent: the default. */
  readonly duration: number | undefined;
  readonly logins: readonly Login[];
};

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
  const answers = createAnswers(options, async (image, signal) => {
    const result = await runProgram({
      path: join(binDirectory, name),
      args,
      stdin: JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, image }),
      env: programEnvironment(env),
      timeoutMs: options.timeoutMs,
      signal,
    });
    if (result.code !== 0) throw endedWith(result);
    const { keyType, duration, logins } = readResponse(result.stdout, apiVersion);
    const key = keyType === 'Image' ? image : keyType === 'Registry' ? registryOf(image) : GLOBAL;
    return { logins, key, ttlMs: duration ?? provider.defaultCacheDuration };
  });
  return {
    kind: 'plug-in',
    name,
    ...answers,
    // The rules for logins and for images are the same: host globs, ports, path prefixes.
    ask: async (image, ...more) => (matchCredentials(patterns, image).length === 0 ? [] : answers.ask(image, ...more)),
  };
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
