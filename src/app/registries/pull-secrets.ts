import { LRUCache } from 'lru-cache';
import { onAbort } from '../../kit/abort.ts';
import type { Clock } from '../../kit/clock.ts';
import { createFairQueue } from '../../kit/fairness/fair-queue.ts';
import { createFlights } from '../../kit/flights.ts';
import { stringAt, stringsAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { get } from '../../kube/read.ts';
import type { Access, ReadSecret } from '../../oci/credentials/keyring.ts';
import { readPullSecrets } from '../../placement/objects/pod.ts';

/** A service account's pull secrets change rarely, and a template that missed them is decided again. */
const KEPT_MS = 60_000;
const MAX_ACCOUNTS = 10_000;

/** A DNS subdomain (RFC 1123): what Secrets and service accounts are called, and nothing that leads elsewhere in a path. */
const NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/** What an API server or a proxy before it says to a request that it does not understand. */
const MISUNDERSTOOD: ReadonlySet<number> = new Set([400, 414, 431]);

/** Whoever writes a pod chooses the names in it, and the API server checks only some of them. */
function isName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

/** A Secret that was read holds for this long, and so does the answer that there is none or that we may not read it. Milliseconds. */
const SECRET_MS = 10_000;
/** What is remembered of Secrets: how many, and how many characters of them in all. */
const MAX_SECRETS = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** The author of a pod decides how many Secrets are asked for: so few are read at once, and so many wait in one namespace. */
const IN_FLIGHT = 4;
const MAX_WAITING = 1_000;
/** What a pull secret has; a Secret of another type may hold a megabyte of anything. */
const KEYS: ReadonlySet<string> = new Set(['.dockerconfigjson', '.dockercfg']);

/**
 * Reads what a look-up may log in with. A 403 means "no secret": reading them is a right of its own. Each Secret is read
 * once for all who want it at the time, a few at once, namespaces taking turns. Throws what may pass: then it is asked again.
 */
export function createPullSecretReader(client: ApiClient, clock: Clock) {
  const flights = createFlights<ReadSecret>();
  const line = createFairQueue<() => void>();
  const kept = new LRUCache<string, { readonly secret: ReadSecret; readonly at: number }>({
    max: MAX_SECRETS,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ secret }, key) => key.length + charactersOf(secret),
  });
  let running = 0;

  async function takePlace(namespace: string, signal: AbortSignal): Promise<void> {
    if (running < IN_FLIGHT) {
      running += 1;
      return;
    }
    if (line.sizeOf(namespace) >= MAX_WAITING) throw new Error(`too many Secrets of ${namespace} are wanted at once`);
    await new Promise<void>((resolve, reject) => {
      const leave = line.add(namespace, () => {
        forget();
        resolve();
      });
      const forget = onAbort(signal, () => {
        leave();
        reject(signal.reason);
      });
    });
  }

  function givePlace(): void {
    const start = line.take();
    // The place goes on to the next one.
    if (start !== undefined) start();
    else running -= 1;
  }

  async function read(namespace: string, name: string, key: string, signal: AbortSignal): Promise<ReadSecret> {
    await takePlace(namespace, signal);
    try {
      const secret = await readSecret(client, namespace, name, signal);
      kept.set(key, { secret, at: clock.monotonic() });
      return secret;
    } finally {
      givePlace();
    }
  }

  async function secretOf(namespace: string, name: string, signal: AbortSignal): Promise<ReadSecret> {
    if (!isName(name)) return { name, problem: 'its name is not one that a Secret can have' };
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
    if (status === 403) return { name, problem: 'we may not read it' };
    if (MISUNDERSTOOD.has(status)) return { name, problem: `it cannot be read: the API server answers ${status}` };
    throw error;
  }
}

/** Reads the pull secrets that admission gives to pods of a service account; remembers them for a minute. */
export function createServiceAccountReader(client: ApiClient, clock: Clock) {
  const kept = new LRUCache<string, { names: readonly string[]; at: number }>({ max: MAX_ACCOUNTS });
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

/** What was wrong with a pull secret is worth telling for this long after a look-up met it. */
const PROBLEM_MS = 10 * 60_000;
const MAX_PROBLEMS = 10_000;

/** Remembers which pull secrets were passed over; `onNew` is called once for each problem. */
export function createSecretProblems(clock: Clock, onNew: (secret: string, reason: string) => void) {
  const problems = new LRUCache<string, { reason: string; at: number }>({ max: MAX_PROBLEMS });
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
