import { onAbort, untilAborted } from '../kit/abort.ts';
import { systemClock } from '../kit/clock.ts';
import { type Askers, createAskers } from '../kit/fairness/asking-namespaces.ts';
import { createTurns, inTurns } from '../kit/fairness/event-loop.ts';
import { createFlights } from '../kit/flights.ts';
import {
  createFailures,
  createKnowledge,
  type Failures,
  type FailuresOptions,
  type ImageFacts,
  type KnowledgeOptions,
  type Known,
  keyOf,
  type Question,
} from './cache.ts';
import { type Access, createKeyring, type KeyringOptions } from './credentials/keyring.ts';
import { type Endpoint, labelOf } from './endpoints/endpoint.ts';
import { ImageError } from './errors.ts';
import { createRegistry, type RegistryOptions } from './http/registry-client.ts';
import { withDeadline } from './http/transport.ts';
import { createStarts } from './lookup/limiter.ts';
import { createLookups, type LookupOptions, lookup } from './lookup/lookup.ts';
import { LONGEST_WAIT, waitAt } from './lookup/pace.ts';
import { createQuery, ownerOf, type QueryOptions, query } from './lookup/query.ts';
import { createRequests, type QueriedTarget } from './lookup/request.ts';
import { parseReference, type Reference } from './reference.ts';
import { pulledByPodsText } from './sentences.ts';

/** The result of a lookup. */
export type Resolution = ImageFacts & {
  /** The digest that the name resolved to. */
  readonly digest?: string;
  /** host[:port] of the endpoint that answered; absent if the digest was known. */
  readonly source?: string;
};

/** What is in memory about an image. */
export type Look =
  | (Pick<ImageFacts, 'platforms' | 'isIndex' | 'isBundle'> & {
      readonly kind: 'known';
      /** Whether this has expired and stays in use because its last revalidation failed. Absent: it is fresh. */
      readonly isStale?: true;
    })
  /**
   * `isPlanned`: false if too many lookups wait already. Then nothing is planned, and it must be asked for again. `line`: where
   * lookups wait because of a registry's limit.
   */
  | { readonly kind: 'pending'; readonly isPlanned: boolean; readonly line?: Line }
  | {
      readonly kind: 'failed';
      readonly error: ImageError;
      /** False if too many lookups wait already, and one is due. */
      readonly isPlanned: boolean;
      /** Milliseconds since the first failure after the last success in this process. */
      readonly sinceMs: number;
      /** Milliseconds until the image may be looked up again; infinite if it may be now: the end of that lookup is reported. */
      readonly retryInMs: number;
    };

/**
 * Milliseconds for which nobody asked for an image whose retry was due: then its failure says nothing about now, and the image counts as
 * pending until the retry has ended. Where a tag's last platforms are known, they are used for longer.
 */
const [IDLE, IDLE_STALE] = [90_000, 300_000];

/** A registry's line: the milliseconds until all who wait there had their turn. */
type Line = { readonly registry: string; readonly inMs: number };

/** A whole lookup gets three times `timeoutMs`. It waits as long for its turn, or longer while the host answers others. */
export type ResolverOptions = KeyringOptions &
  RegistryOptions &
  Omit<LookupOptions, 'recovered'> &
  Pick<QueryOptions, 'namesSkipped'> &
  KnowledgeOptions &
  FailuresOptions & {
    /** Returns the endpoints of an image, in order; never empty. */
    readonly endpointsOf: (reference: Reference) => readonly Endpoint[];
    /**
     * Returns the name of the kubelet plug-in with which kubelets pull an image (`host/repository`) as the pod's service account, if
     * there is one.
     */
    readonly providerForPods?: (name: string) => string | undefined;
    /** The failures of the resolver that this one replaces; default: none. */
    readonly failures?: Failures;
    /** Ends everything: lookups, connections, timers. */
    readonly signal: AbortSignal;
  };

/** What a command needs to send requests of its own to an endpoint that it was led to. */
export type ReachParts = Pick<QueryOptions, 'requests' | 'now'> & Pick<ResolverOptions, 'after'>;

/** Work at an image's registry other than a lookup. */
type Reach<T> = (at: QueriedTarget, parts: ReachParts) => Promise<T>;

/** Finds out which platforms images can run on, from memory or by asking their registries. */
export type Resolver = Omit<TagResolver, 'tags' | 'reach'>;

/** A resolver that can also list the tags of an image's repository, and lets others ask its registry, which only commands need. */
export type TagResolver = ReturnType<typeof createResolver>;

/** What a resolver knows, whom it calls, and which lookups are under way. */
type ResolverState = ReturnType<typeof createResolverState>;

function createResolverState(options: ResolverOptions) {
  const { now, endpointsOf, signal } = options;
  const failures = options.failures ?? createFailures(options);
  const keyring = createKeyring(options);
  const routeOf = (reference: Reference) => endpointsOf(reference)[0]?.route;
  const knowledge = createKnowledge({ ...options, routeOf }, (reference, access) =>
    keyring.fingerprints(access, namesOf(options, reference)),
  );
  const lookups = createLookups({ ...options, recovered: (place): void => wake(state, failures.waitingFor(place)) });
  const { send, destroy } = createRegistry(options);
  onAbort(signal, destroy);
  const requests = createRequests({ send, now });
  const state = {
    ...{ options, failures, keyring, knowledge, lookups, requests, starts: createStarts() },
    query: createQuery({ ...options, requests, health: lookups.health }),
    turns: createTurns({ monotonic: now }),
    listeners: [] as ((canonical: string) => void)[],
    flights: createFlights<Known>(),
    /** By image, and by the pull secrets that match it at each of its endpoints. */
    merged: createFlights<Known>(),
    /** The number of calls of {@link Resolver.forgive}. */
    generation: 0,
  };
  return state;
}

/** @throws Error for invalid CIDRs in `addresses` */
export function createResolver(options: ResolverOptions) {
  const resolver = createResolverState(options);
  const { failures, knowledge, listeners, flights, starts } = resolver;
  return {
    /**
     * Returns what is in memory about an image, and asks for a lookup if one is due: not while one runs, not while the image is
     * known and fresh, and not before the time of the retry. `mayStart` is called just before, and may prevent it; default: it
     * allows it. Never waits.
     */
    look: (image: string, access: Access, mayStart?: () => boolean): Look => look(resolver, image, access, mayStart),
    /**
     * Calls the listener at the end of each lookup with the image's canonical name (`canonicalName` of reference.ts), and when it has
     * begun to wait because of a registry's limit.
     */
    onSettled: (listener: (canonical: string) => void): void => void listeners.push(listener),
    /**
     * Waits for an answer, even before the time of the retry.
     *
     * @throws ImageError, or the signal's reason; the lookup then goes on for other callers
     */
    async resolve(image: string, access: Access, signal: AbortSignal): Promise<Resolution> {
      signal.throwIfAborted();
      const question = knowledge.read(image, access);
      const { found, digest, source } =
        knowledge.fresh(question) ?? (await untilAborted(fly(resolver, question, keyOf(question)), signal));
      return { ...found, ...(digest === undefined ? {} : { digest }), ...(source === undefined ? {} : { source }) };
    },
    /**
     * Lists the tags of an image's repository: one request, or a few for many tags.
     *
     * @throws ImageError, or the signal's reason
     */
    async tags(image: string, access: Access, signal: AbortSignal): Promise<readonly string[]> {
      const reference = parseReference(image);
      const able = options.endpointsOf(reference).filter((endpoint) => endpoint.resolvesTags);
      // A mirror may know only those that were pulled through it.
      const endpoint = able.find(({ isSource }) => isSource) ?? able[0];
      return endpoint === undefined ? [] : reach(resolver, reference, access, signal, resolver.requests.tags, endpoint);
    },
    /**
     * Does work at the first endpoint of an image where it succeeds, with each login in turn. The work is handed in, so that the controller
     * does not load what only commands do.
     *
     * @throws ImageError, or the signal's reason
     */
    reach: async <T>(image: string, access: Access, signal: AbortSignal, work: Reach<T>): Promise<T> =>
      reach(resolver, parseReference(image), access, signal, work),
    /** The number of lookups that run or wait for their turn. */
    pending: (): number => flights.size + starts.size,
    /** The number of images, per access, whose last lookup failed. */
    failing: (): number => failures.count(),
    /** Call when credentials or mirrors have changed: failed images may be looked up again at once, and the listeners are called. */
    forgive(): void {
      resolver.generation += 1;
      resolver.lookups.logins.forgive();
      wake(resolver, failures.keys());
    },
  };
}

function look(resolver: ResolverState, image: string, access: Access, mayStart: () => boolean = () => true): Look {
  const { options, failures, knowledge } = resolver;
  const question = knowledge.read(image, access);
  const fresh = knowledge.fresh(question);
  if (fresh !== undefined) {
    options.telemetry?.cached?.('hit');
    return knownAs(fresh);
  }
  const key = keyOf(question);
  const failure = failures.get(key);
  // Read once. Otherwise a retry that becomes due in between would be neither started nor planned by the caller.
  const at = options.now();
  const isDue = (failure?.retryAt ?? 0) <= at;
  let isStarted: boolean | undefined;
  const may = (): boolean => {
    isStarted = mayStart();
    return isStarted;
  };
  const isPlanned = !isDue || options.signal.aborted || plan(resolver, image, question, key, may);
  if (failure === undefined) return pending(resolver, question, isPlanned);
  // What was known stays valid until a revalidation succeeds.
  const stale = knowledge.last(question);
  const isIdle = at - failure.retryAt >= (stale === undefined ? IDLE : IDLE_STALE);
  if (isStarted && isPlanned && isIdle) failures.doubt(key);
  if (isStarted !== false && isPlanned && failures.get(key)?.isDoubtful) return pending(resolver, question, true);
  if (stale !== undefined) {
    options.telemetry?.cached?.('stale');
    return { ...knownAs(stale), isStale: true };
  }
  // Who waits in a queue that moves has not failed, for as long as anybody may wait in one.
  const mayWait = failure.error.temporary && isDue && isPlanned && at - failure.firstFailedAt < LONGEST_WAIT;
  const waiting = mayWait ? pending(resolver, question, isPlanned) : undefined;
  if (waiting?.line !== undefined) return waiting;
  const retryInMs = isDue ? Number.POSITIVE_INFINITY : failure.retryAt - at;
  return { kind: 'failed', error: failure.error, isPlanned, sinceMs: at - failure.firstFailedAt, retryInMs };
}

function knownAs({ found: { platforms, isIndex, isBundle } }: Known): Look & { readonly kind: 'known' } {
  return { kind: 'known', platforms, isIndex, ...(isBundle ? { isBundle } : {}) };
}

function pending(resolver: ResolverState, { reference }: Question, isPlanned: boolean): Look & { kind: 'pending' } {
  const line = reference instanceof ImageError ? undefined : lineAt(resolver, reference);
  return { kind: 'pending', isPlanned, ...(line === undefined ? {} : { line }) };
}

/** Returns the line at the limit of the image's registry; undefined if nobody waits there, or it does not move. */
function lineAt({ options, lookups }: ResolverState, reference: Reference): Line | undefined {
  const lines = options.endpointsOf(reference).flatMap((endpoint): readonly Line[] => {
    const inMs = waitAt(lookups.paces, endpoint.host);
    return inMs === undefined ? [] : [{ registry: labelOf({ endpoint, reference }), inMs }];
  });
  return lines.toSorted((one, other) => other.inMs - one.inMs)[0];
}

/** Plans a lookup, or joins the one that runs. False if all places are taken. */
function plan(resolver: ResolverState, image: string, question: Question, key: string, may: () => boolean): boolean {
  const { options, failures, knowledge, flights, starts } = resolver;
  const { access, reference } = question;
  if (flights.add(key, access.namespace)) return true;
  const { registry: host, repository } = reference instanceof ImageError ? { registry: '', repository: '' } : reference;
  const project = repository.split('/', 1)[0] ?? '';
  // Only the names are kept while it waits.
  return starts.add({ namespace: access.namespace, host, project }, key, may, () => {
    if (options.signal.aborted || (failures.get(key)?.retryAt ?? 0) > options.now()) return undefined;
    const again = knowledge.read(image, access);
    return knowledge.fresh(again) === undefined ? fly(resolver, again, key) : undefined;
  });
}

/** Starts a lookup, or joins the one that runs. */
function fly(resolver: ResolverState, question: Question, key: string): Promise<Known> {
  let isFirst = false;
  const work = (_: AbortSignal, askers: Askers) => {
    isFirst = true;
    return lookUp(resolver, question, key, askers);
  };
  const askers = createAskers(question.access.namespace);
  const found = resolver.flights.join(key, resolver.options.signal, work, askers);
  const settle = () => {
    if (isFirst) report(resolver, question.canonical);
  };
  found.then(settle, settle);
  return found;
}

async function lookUp(resolver: ResolverState, question: Question, key: string, askers: Askers): Promise<Known> {
  const { options, failures, generation } = resolver;
  const { signal, telemetry, ttl } = options;
  const { reference, access } = question;
  try {
    signal.throwIfAborted();
    if (reference instanceof ImageError) throw reference;
    const found = await ask(resolver, question, reference, askers);
    failures.remove(key);
    telemetry?.resolved?.('ok');
    return found;
  } catch (error) {
    // A lookup that ends because everything ends is not a failure of the image.
    if (signal.aborted) throw signal.reason;
    const known = withReason(options, error, reference);
    failures.add(key, known, ttl.failure, access.namespace);
    // The lookup used credentials or mirrors that have changed since.
    if (generation !== resolver.generation) failures.forgive(key);
    telemetry?.resolved?.(known.code);
    throw known;
  }
}

/** Looks an image up, once for all that hold the same credentials for it, and keeps the answer. */
async function ask(resolver: ResolverState, asked: Question, reference: Reference, askers: Askers): Promise<Known> {
  const { options, knowledge } = resolver;
  const { signal, timeoutMs } = options;
  const keys = await open(resolver, asked.access, signal);
  const endpoints = options.endpointsOf(reference);
  const matching = endpoints.map(({ credentialName }) => keys.fingerprints(credentialName));
  const owners = [...new Set(matching.flat())];
  // The credentials are known only now: another caller with the same ones may have found the answer already.
  const question = { ...asked, owners: () => owners };
  const known = knowledge.fresh(question);
  if (known !== undefined) return known;
  const key = [reference.canonical, ...matching.map((fingerprints) => fingerprints.join())].join(' ');
  const onWait = (): void => {
    if (lineAt(resolver, reference) !== undefined) report(resolver, reference.canonical);
  };
  const work = async (_: AbortSignal, all: Askers): Promise<Known> => {
    const previous = reference.digest === undefined ? knowledge.last(question) : undefined;
    const task = { reference, endpoints, askers: all, onWait, budgetMs: timeoutMs * 3, signal };
    const { entry, owner, outcome } = await lookup(
      resolver.lookups,
      { ...task, credentials: keys.candidates },
      async (at) => ({ ...(await query(resolver.query, at, previous)), owner: ownerOf(at.credential) }),
    );
    options.telemetry?.cached?.(outcome === 'revalidated' ? 'revalidated' : 'miss');
    knowledge.keep(reference, owner, entry);
    return entry;
  };
  return resolver.merged.join(key, signal, work, askers);
}

function open({ options, keyring }: ResolverState, access: Access, until: AbortSignal) {
  const problem = 'the pull secrets could not be read from the API server in time';
  const unreadable = () => new ImageError(problem, { code: 'unavailable' });
  const work = (late: AbortSignal) => untilAborted(keyring.open(access, late), late);
  return withDeadline(options.timeoutMs, until, unreadable, work, options.after);
}

/** Adds to a refusal that kubelets pull the image with a login that archaware does not have. */
function withReason(options: ResolverOptions, error: unknown, reference: Reference | ImageError): ImageError {
  if (!(error instanceof ImageError)) {
    const message = 'the lookup failed because of an error in archaware; please report it';
    return new ImageError(message, { code: 'unavailable', cause: error });
  }
  if (error.code !== 'denied' || reference instanceof ImageError) return error;
  const [provider] = namesOf(options, reference).flatMap((name) => options.providerForPods?.(name) ?? []);
  return provider === undefined
    ? error
    : new ImageError(`${error.message}; ${pulledByPodsText(provider)}`, { ...error, cause: error });
}

function namesOf({ endpointsOf }: ResolverOptions, reference: Reference): readonly string[] {
  return endpointsOf(reference).map(({ credentialName }) => credentialName);
}

/** Makes failed images due. */
function wake(resolver: ResolverState, keys: readonly string[]): void {
  void inTurns(resolver.turns, keys, (key) => {
    resolver.failures.forgive(key);
    // A canonical name contains no space; an access key may contain anything.
    report(resolver, key.split(' ', 1)[0] ?? key);
  });
}

function report({ options, listeners }: ResolverState, canonical: string): void {
  if (!options.signal.aborted) for (const listener of listeners) listener(canonical);
}

/**
 * Does work at the first of the endpoints where it succeeds, with the credentials, limits and turns that lookups have. Each of its
 * requests has a deadline, and so it has none.
 */
async function reach<T>(
  resolver: ResolverState,
  reference: Reference,
  access: Access,
  until: AbortSignal,
  work: Reach<T>,
  only?: Endpoint,
): Promise<T> {
  const { options, requests, lookups } = resolver;
  const { now, after = systemClock.after, endpointsOf, signal: end } = options;
  const signal = AbortSignal.any([end, until]);
  const { candidates: credentials } = await open(resolver, access, signal);
  const endpoints = only === undefined ? endpointsOf(reference) : [only];
  const task = { reference, endpoints, credentials, askers: createAskers(access.namespace), signal };
  return lookup(lookups, { ...task, budgetMs: Number.POSITIVE_INFINITY }, (at) => work(at, { requests, now, after }));
}
