import { untilAborted } from '../kit/abort.ts';
import { systemClock } from '../kit/clock.ts';
import { type Askers, createAskers } from '../kit/fairness/askers.ts';
import { createFlights } from '../kit/flights.ts';
import type { Knowledge, Known, Question } from './cache/knowledge.ts';
import type { Access, Keyring } from './credentials/keyring.ts';
import { type Endpoint, labelOf } from './endpoints/endpoint.ts';
import { ImageError } from './errors.ts';
import { createRegistry, type RegistryOptions } from './http/registry-client.ts';
import { withDeadline } from './http/transport.ts';
import { createHealth } from './lookup/health.ts';
import { BOUNDS, createLimiter } from './lookup/limiter.ts';
import { createLogins } from './lookup/logins.ts';
import { createLookup, type LookupOptions } from './lookup/lookup.ts';
import { createPaces } from './lookup/pace.ts';
import { createQuery, ownerOf, type QueriedTarget, type QueryOptions } from './lookup/query.ts';
import { listTags } from './lookup/tags.ts';
import type { Reference } from './reference.ts';

/** A whole lookup gets three times `timeoutMs`. It waits as long for its turn, or longer while the host answers others. */
export type AskingOptions = RegistryOptions &
  Pick<LookupOptions, 'isPrivate'> &
  Pick<QueryOptions, 'cache' | 'namesSkipped'> & {
    /** Returns the endpoints of an image, in order; never empty. */
    readonly endpointsOf: (reference: Reference) => readonly Endpoint[];
    /** Called with the key of a place (lookup/place.ts) that failed and has answered now. */
    readonly recovered?: (place: string) => void;
    /** Milliseconds for which a failure is remembered that does not pass by itself. */
    readonly ttl: { readonly failure: number };
    /** The most lookups in flight at one host. */
    readonly maxInFlight: number;
    /** Milliseconds without an answer after which no lookup waits for its turn at an account. Default: 30 s. */
    readonly patienceMs?: number;
    /** Called when a lookup has begun to wait for its turn at a registry's limit. */
    readonly onWait?: (reference: Reference) => void;
    /** Ends all waits for a turn; default: never. */
    readonly waitsUntil?: AbortSignal;
    /** Ends everything: lookups, connections, timers. */
    readonly signal: AbortSignal;
  };

/** What a command needs to send requests of its own to an endpoint that it was led to. */
export type AskingParts = Pick<QueryOptions, 'send' | 'now'> & Pick<AskingOptions, 'after' | 'timeoutMs'>;

/** Work at an image's registry other than a lookup. */
export type Reach<T> = (at: QueriedTarget, parts: AskingParts) => Promise<T>;

/** A registry's line: the milliseconds until all who wait there had their turn. */
export type Line = { readonly registry: string; readonly inMs: number };

/**
 * Creates everything that sends requests to registries.
 *
 * @throws Error for invalid CIDRs in `addresses`
 */
export function createAsking(options: AskingOptions, keyring: Keyring, knowledge: Knowledge) {
  const { endpointsOf, timeoutMs, signal, telemetry, after = systemClock.after } = options;
  const { now, patienceMs, waitsUntil } = options;
  const logins = createLogins({ refusedMs: options.ttl.failure, now });
  const paces = createPaces({ logins, now, after, patienceMs, waitsUntil });
  const { send, destroy } = createRegistry(options);
  const health = createHealth(options.now, options.recovered);
  const limiter = createLimiter({ perHost: options.maxInFlight, ...BOUNDS, standing: health.standing });
  const parts = { ...options, keyring, send, logins, paces, health, limiter };
  const lookup = createLookup(parts);
  const query = createQuery(parts);
  /** By image, and by the pull secrets that match it at each of its endpoints. */
  const lookups = createFlights<Known>();

  const open = (access: Access, until: AbortSignal) =>
    withDeadline(timeoutMs, until, unreadable, (late) => untilAborted(keyring.open(access, late), late), after);

  /**
   * Does work at the first of the endpoints where it succeeds, with the credentials, limits and turns that lookups have. Each of its
   * requests has a deadline, and so it has none.
   *
   * @throws ImageError, or the signal's reason
   */
  async function reach<T>(
    reference: Reference,
    access: Access,
    until: AbortSignal,
    work: Reach<T>,
    endpoints = endpointsOf(reference),
  ): Promise<T> {
    const { candidates: credentials } = await open(access, until);
    const task = { reference, endpoints, credentials, askers: createAskers(access.namespace), signal: until };
    return lookup({ ...task, budgetMs: Number.POSITIVE_INFINITY }, (at) => work(at, parts));
  }

  /**
   * Looks an image up, once for all that hold the same credentials for it, and keeps the answer.
   *
   * @throws ImageError, or the signal's reason
   */
  async function ask(asked: Question, reference: Reference, askers: Askers): Promise<Known> {
    const keys = await open(asked.access, signal);
    const endpoints = endpointsOf(reference);
    const matching = endpoints.map(({ credentialName }) => keys.fingerprints(credentialName));
    const owners = [...new Set(matching.flat())];
    // The credentials are known only now: another caller with the same ones may have found the answer already.
    const question = { ...asked, owners: () => owners };
    const known = knowledge.fresh(question);
    if (known !== undefined) return known;
    const key = [reference.canonical, ...matching.map((fingerprints) => fingerprints.join())].join(' ');
    const work = async (_: AbortSignal, all: Askers): Promise<Known> => {
      const previous = reference.digest === undefined ? knowledge.last(question) : undefined;
      const onWait = (): void => options.onWait?.(reference);
      const task = { reference, endpoints, askers: all, onWait, budgetMs: timeoutMs * 3, signal };
      const { entry, owner, outcome } = await lookup({ ...task, credentials: keys.candidates }, async (at) => ({
        ...(await query(at, previous)),
        owner: ownerOf(at.credential),
      }));
      telemetry?.cached?.(outcome === 'revalidated' ? 'revalidated' : 'miss');
      knowledge.keep(reference, owner, entry);
      return entry;
    };
    return lookups.join(key, signal, work, askers);
  }

  return {
    ask,
    reach,
    /** Lists the tags of the image's repository. A mirror may know only those that were pulled through it, so the source is asked. */
    async listTags(reference: Reference, access: Access, until: AbortSignal): Promise<readonly string[]> {
      const able = endpointsOf(reference).filter((endpoint) => endpoint.resolvesTags);
      const endpoint = able.find(({ isSource }) => isSource) ?? able[0];
      if (endpoint === undefined) return [];
      return reach(reference, access, until, (at) => listTags(at, send, now), [endpoint]);
    },
    /** Returns the line at the limit of the image's registry; undefined if nobody waits there, or it does not move. */
    lineAt(reference: Reference): Line | undefined {
      const lines = endpointsOf(reference).flatMap((endpoint): readonly Line[] => {
        const inMs = paces.waitAt(endpoint.host);
        return inMs === undefined ? [] : [{ registry: labelOf({ endpoint, reference }), inMs }];
      });
      return lines.toSorted((one, other) => other.inMs - one.inMs)[0];
    },
    /** Forgets which credentials were refused, so that they are tried again. */
    forgive: logins.forgive,
    destroy,
  };
}

/** The failure of a lookup whose pull secrets could not be read in time. */
function unreadable(): ImageError {
  return new ImageError('the pull secrets could not be read from the API server in time', { code: 'unavailable' });
}
