import { join } from 'node:path';
import * as z from 'zod';
import { parseGoDuration } from '../../kit/duration.ts';
import { parseObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import { type CredentialProgram, createAnswers, GLOBAL, type ProgramOptions, registryOf } from './answers.ts';
import type { Login } from './docker.ts';
import { matchCredentials } from './match.ts';
import { endedWith, ProgramError, programEnvironment, runProgram } from './process.ts';
import type { Provider } from './provider-config.ts';

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
    const { cacheKeyType, cacheDuration, auth } = readResponse(result.stdout, apiVersion);
    const key = { Image: image, Registry: registryOf(image), Global: GLOBAL }[cacheKeyType];
    const logins = Object.entries(auth ?? {}).map(([pattern, login]): Login => ({ pattern, ...login }));
    return { logins, key, ttlMs: cacheDuration ?? provider.defaultCacheDuration };
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
