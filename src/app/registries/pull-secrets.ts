import { LRUCache } from 'lru-cache';
import type { Clock } from '../../kit/clock.ts';
import { createTurns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { stringAt, stringsAt } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError } from '../../kube/errors.ts';
import { get } from '../../kube/read.ts';
import type { Access, ReadSecret } from '../../oci/credentials/keyring.ts';
import { readPullSecrets } from '../../placement/objects/pod.ts';

/** How long a service account's pull secrets are remembered. They change rarely, and a template with a failed lookup is decided again. */
const KEPT_MS = 60_000;
/** The most bytes of the names of pull secrets that are remembered. */
const MAX_ACCOUNT_BYTES = 4 * 1024 * 1024;

/** The form of names of Secrets and service accounts, a DNS subdomain (RFC 1123). It contains nothing that changes a URL path. */
const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/** The status codes of an API server, or a proxy before it, for a request that it does not understand. */
const MISUNDERSTOOD: ReadonlySet<number> = new Set([400, 414, 431]);

/** Whether a text is a valid name. The author of a pod chooses the names in it, and the API server checks only some of them. */
function isName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

/** Milliseconds for which a Secret is remembered, and also that it does not exist or may not be read. */
const SECRET_MS = 10_000;
/** The limits for remembered Secrets: their number, and the characters of all of them. */
const MAX_SECRETS = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** The limits for reads of Secrets: at once, and waiting in one namespace. The author of a pod decides how many are requested. */
const SECRETS = 'secrets';
const IN_FLIGHT = 4;
const MAX_WAITING = 1_000;
/** The keys of a pull secret. Other keys are dropped: a Secret of another type may have a megabyte of data. */
const KEYS: ReadonlySet<string> = new Set(['.dockerconfigjson', '.dockercfg']);

/**
 * Creates a function that reads the pull secrets for a lookup. A 403 counts as "no secret", because the right to read Secrets is
 * optional. Requests for the same Secret at the same time share one read. Few reads run at once, and namespaces take turns. A
 * temporary error is thrown, so that the lookup is retried.
 */
export function createPullSecretReader(client: ApiClient, clock: Clock) {
  const flights = createFlights<ReadSecret>();
  const turns = createTurns();
  const kept = new LRUCache<string, { readonly secret: ReadSecret; readonly at: number }>({
    max: MAX_SECRETS,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ secret }, key) => key.length + charactersOf(secret),
  });

  async function read(namespace: string, name: string, key: string, signal: AbortSignal): Promise<ReadSecret> {
    if (turns.waiting(namespace, SECRETS) >= MAX_WAITING)
      throw new Error(`too many Secrets of namespace ${namespace} are read at once`);
    return turns.run(namespace, [[SECRETS, IN_FLIGHT]], signal, async () => {
      const secret = await readSecret(client, namespace, name, signal);
      kept.set(key, { secret, at: clock.monotonic() });
      return secret;
    });
  }

  async function secretOf(namespace: string, name: string, signal: AbortSignal): Promise<ReadSecret> {
    if (!isName(name)) return { name, problem: 'its name is not a valid name of a Secret' };
    const key = `${namespace}/${name}`;
    const known = kept.get(key);
    if (known !== undefined && clock.monotonic() - known.at < SECRET_MS) return known.secret;
    return flights.join(key, signal, (shared) => read(namespace, name, key, shared));
  }

  return async ({ namespace, pullSecrets }: Access, signal: AbortSignal): Promise<ReadSecret[]> =>
    Promise.all(pullSecrets.map((name) => secretOf(namespace, name, signal)));
}

function charactersOf(secret: ReadSecret): number {
  if ('problem' in secret) return 1;
  return Object.values(secret.data).reduce((sum, value) => sum + value.length, 1);
}

async function readSecret(
  client: ApiClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<ReadSecret> {
  try {
    const object = await get(client, `/api/v1/namespaces/${namespace}/secrets/${name}`, signal);
    const data = Object.entries(stringsAt(object, 'data')).filter(([key]) => KEYS.has(key));
    return { name, type: stringAt(object, 'type') ?? '', data: Object.fromEntries(data) };
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 404) return { name, problem: 'it does not exist' };
    if (status === 403) return { name, problem: 'it may not be read' };
    if (MISUNDERSTOOD.has(status)) return { name, problem: `it cannot be read: the API server answers ${status}` };
    throw error;
  }
}

/** Creates a function that reads the pull secrets that the API server adds to pods of a service account. It remembers them for a minute. */
export function createServiceAccountReader(client: ApiClient, clock: Clock) {
  const kept = createLru<{ names: readonly string[]; at: number }>(MAX_ACCOUNT_BYTES, ({ names }, key) =>
    names.reduce((sum, name) => sum + 32 + name.length, 128 + key.length),
  );
  return async (namespace: string, name: string, signal: AbortSignal): Promise<readonly string[]> => {
    const key = `${namespace}/${name}`;
    const known = kept.get(key);
    if (known !== undefined && clock.monotonic() - known.at < KEPT_MS) return known.names;
    const names = await readNames(client, namespace, name, signal);
    kept.set(key, { names, at: clock.monotonic() });
    return names;
  };
}

async function readNames(client: ApiClient, namespace: string, name: string, signal: AbortSignal): Promise<string[]> {
  if (!isName(name)) return [];
  try {
    return readPullSecrets(await get(client, `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`, signal));
  } catch (error) {
    const isTold = error instanceof ApiError && [403, 404, ...MISUNDERSTOOD].includes(error.status);
    if (isTold) return [];
    throw error;
  }
}

/** How long a problem of a pull secret is reported after a lookup found it. */
const PROBLEM_MS = 10 * 60_000;
const MAX_PROBLEMS = 10_000;

/** Creates a memory of pull secrets that could not be used. `onNew` is called once for each problem. */
export function createSecretProblems(clock: Clock, onNew: (secret: string, reason: string) => void) {
  const problems = createLru<{ reason: string; at: number }>(MAX_PROBLEMS);
  return {
    add({ namespace, name, reason }: { namespace: string; name: string; reason: string }): void {
      const secret = `${namespace}/${name}`;
      if (problems.get(secret)?.reason !== reason) onNew(secret, reason);
      problems.set(secret, { reason, at: clock.monotonic() });
    },
    get(namespace: string, name: string): string | undefined {
      const problem = problems.get(`${namespace}/${name}`);
      return problem !== undefined && clock.monotonic() - problem.at < PROBLEM_MS ? problem.reason : undefined;
    },
  };
}
