import { setMaxListeners } from 'node:events';
import { untilAborted } from '../kit/abort.ts';
import { createTurns, inTurns } from '../kit/fairness/turns.ts';
import type { ImageCache, ImageFacts, TagEntry } from './cache/cache.ts';
import { createFailures, type Failure, type Failures, unexpected, unreadable } from './cache/failures.ts';
import { createMemory } from './cache/freshness.ts';
import { type Access, accessKey, createKeyring, type KeyringOptions, type Keys } from './credentials/keyring.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { ImageError, type ImageErrorCode } from './errors.ts';
import { createRegistry, type RegistryOptions } from './http/client.ts';
import { withDeadline } from './http/transport.ts';
import { type Askers, createAskers } from './lookup/askers.ts';
import { createCircuits } from './lookup/circuit.ts';
import { BOUNDS, createLimiter } from './lookup/limiter.ts';
import { createLookup } from './lookup/lookup.ts';
import { placeOf } from './lookup/place.ts';
import { createStarts, STARTS } from './lookup/starts.ts';
import { listTags } from './lookup/tags.ts';
import { createReferenceReader, type Reference } from './reference.ts';
import { createWaitingRoom } from './waiting-room.ts';

/** The result of a lookup. */
export type Resolution = ImageFacts & {
  /** The digest that the name resolved to. */
  readonly digest?: string;
  /** host[:port] of the endpoint that answered; absent if the digest was known. */
  readonly source?: string;
};

/**
 * What is known of an image: its platforms, and whether it is an index, which a lookup for a volume always finds out.
 */
export type KnownPlatforms = Pick<ImageFacts, 'platforms' | 'isIndex'> & {
  /** Whether this has expired and stays in use because its last revalidation failed. Absent: it is fresh. */
  readonly isStale?: true;
};

/**
 * A whole lookup gets three times `timeoutMs`. It waits as long for its turn, or longer while the host answers others.
 */
export type ResolverOptions = KeyringOptions &
  RegistryOptions & {
    readonly cache: ImageCache;
    /** The most failures that are remembered. */
    readonly maxEntries: number;
    /** The failures of the resolver that this one replaces; default: none. */
    readonly failures?: Failures;
    /** Returns the endpoints of an image, in order; never empty. */
    readonly endpointsOf: (reference: Reference) => readonly Endpoint[];
    /** Whether an image's name must never be requested anonymously. */
    readonly isPrivate: (name: string) => boolean;
    /**
     * Milliseconds: how long a tag stays valid, the same for `imagePullPolicy: Always` and `latest`, and for lasting
     * failures.
     */
    readonly ttl: { readonly tag: number; readonly always: number; readonly failure: number };
    /** The most lookups in flight at one host. */
    readonly maxInFlight: number;
    /** From 0 to 1, excluding 1. */
    readonly random: () => number;
    /** Ends everything: lookups, connections, timers. */
    readonly signal: AbortSignal;
    /** Called after each lookup: `ok`, or the error's code. */
    readonly onResolution?: (result: 'ok' | ImageErrorCode) => void;
    readonly onCache?: (result: 'hit' | 'miss' | 'stale' | 'revalidated') => void;
  };

/**
 * Finds out which platforms images can run on, from memory or by asking their registries. No method except `resolve`
 * waits.
 */
export type Resolver = {
  /**
   * Returns what is in memory: a fresh tag, a known digest, or a tag whose last revalidation failed. Undefined
   * otherwise, also for a malformed name. Sends no request.
   */
  known(image: string, access: Access): KnownPlatforms | undefined;
  /** Whether the answer of `known` has expired, because its last revalidation failed. */
  isStale(image: string, access: Access): boolean;
  /** Returns the failure of the last lookup if nothing is known. */
  failure(image: string, access: Access): Failure | undefined;
  /**
   * Asks for a lookup. Does nothing while one runs, while the image is known and fresh, and before `retryAt`.
   * `mayStart` is called just before a lookup would begin, and may prevent it. False if too many lookups wait already: then
   * nothing is planned, and it must be asked for again.
   */
  request(image: string, access: Access, mayStart?: () => boolean): boolean;
  /** Calls the listener at the end of each lookup with the image's canonical name (`canonicalName` of reference.ts). */
  onSettled(listener: (canonical: string) => void): void;
  /**
   * Waits for an answer, even before `retryAt`.
   *
   * @throws ImageError, or the signal's reason; the lookup then goes on for other callers
   */
  resolve(image: string, access: Access, signal: AbortSignal): Promise<Resolution>;
  /** The number of lookups that run or wait for their turn. */
  pending(): number;
  /** The number of images, per access, whose last lookup failed. */
  failing(): number;
  /**
   * Call when credentials or mirrors have changed: failed images may be looked up again at once, and the listeners are
   * called.
   */
  forgive(): void;
};

/** A resolver that can also list the tags of an image's repository, which only reports need. */
export type TagResolver = Resolver & {
  /**
   * Lists the tags of an image's repository: one request, or a few for many tags. At most as many are in flight at a host as
   * lookups may be.
   *
   * @throws ImageError, or the signal's reason
   */
  tags(image: string, access: Access, signal: AbortSignal): Promise<readonly string[]>;
};

/** A lookup under way. If it waits for a place, it gets its turn as soon as one of its namespaces does. */
type Flight = { readonly found: Promise<Resolution>; readonly askers: Askers };

/** @throws Error for invalid CIDRs in `addresses` */
export function createResolver(options: ResolverOptions): TagResolver {
  const { now, cache } = options;
  const failures = options.failures ?? createFailures(options);
  const keyring = createKeyring(options);
  const registry = createRegistry(options);
  const circuits = createCircuits(options);
  const limiter = createLimiter({ perHost: options.maxInFlight, ...BOUNDS });
  const lookup = createLookup({
    cache,
    now,
    circuits,
    limiter,
    send: registry.send,
    isPrivate: options.isPrivate,
    refusedMs: options.ttl.failure,
  });

  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const end = (): void => {
    ended.abort(options.signal.reason);
    registry.destroy();
  };
  if (options.signal.aborted) end();
  else options.signal.addEventListener('abort', end, { once: true });

  const parse = createReferenceReader();
  const listeners: ((canonical: string) => void)[] = [];
  /** The number of calls of {@link Resolver.forgive}. */
  let generation = 0;
  /** By what callers ask for: image and access. */
  const flights = new Map<string, Flight>();
  /** By what the registry is asked for: image and the credentials that are tried. */
  const lookups = new Map<string, Flight>();
  const starts = createStarts(STARTS);
  const room = createWaitingRoom();
  const turns = createTurns({ monotonic: now });

  function canonicalOf(image: string): string {
    const parsed = parse(image);
    return parsed instanceof ImageError ? image : parsed.canonical;
  }

  const keyOf = (image: string, access: Access): string => `${canonicalOf(image)} ${accessKey(access)}`;

  /** Returns the names that a pull secret may match for an image. */
  const namesOf = (reference: Reference): string[] =>
    options.endpointsOf(reference).map((endpoint) => endpoint.credentialName);

  const ownersOf = (reference: Reference, access: Access): readonly string[] =>
    keyring.fingerprints(access, namesOf(reference));
  const memory = createMemory({ cache, ttl: options.ttl, ownersOf, now });

  /** Returns what is known and valid without a request. */
  function fresh(reference: Reference, access: Access): Resolution | undefined {
    const known = memory.fresh(reference, access);
    if (known === undefined) return undefined;
    if (known.entry !== undefined) return resolutionOf(known.entry);
    return { ...(reference.digest === undefined ? {} : { digest: reference.digest }), ...known.found };
  }

  /** Returns what was known if the last revalidation failed: it stays valid until one succeeds. */
  function stale(reference: Reference, access: Access): Resolution | undefined {
    if (failures.get(keyOf(reference.text, access)) === undefined) return undefined;
    const entry = memory.last(reference, ownersOf(reference, access), access);
    return entry === undefined ? undefined : resolutionOf(entry);
  }

  /** Starts a lookup, or joins the one that runs. A rejection of the promise is never unhandled. */
  function fly(image: string, access: Access): Promise<Resolution> {
    const key = keyOf(image, access);
    const running = flights.get(key);
    if (running !== undefined) {
      running.askers.join(access.namespace);
      return running.found;
    }
    const asOf = generation;
    const askers = createAskers(access.namespace);
    const found = answer(image, access, askers)
      .then(
        (resolution) => {
          failures.remove(key);
          options.onResolution?.('ok');
          return resolution;
        },
        (error: unknown) => {
          // A lookup that ends because everything ends is not a failure of the image.
          if (ended.signal.aborted) throw ended.signal.reason;
          const known = error instanceof ImageError ? error : unexpected(error);
          failures.add(key, known, options.ttl.failure, access.namespace);
          // The lookup used credentials or mirrors that have changed since.
          if (asOf !== generation) failures.forgive(key);
          options.onResolution?.(known.code);
          throw known;
        },
      )
      .finally(() => {
        flights.delete(key);
        if (!ended.signal.aborted) for (const listener of listeners) listener(canonicalOf(image));
      });
    found.catch(() => undefined);
    flights.set(key, { found, askers });
    return found;
  }

  async function answer(image: string, access: Access, askers: Askers): Promise<Resolution> {
    ended.signal.throwIfAborted();
    const reference = parse(image);
    if (reference instanceof ImageError) throw reference;
    const keys = await withDeadline(options.timeoutMs, ended.signal, unreadable, (signal) =>
      untilAborted(keyring.open(access, signal), signal),
    );
    // The credentials are known only now: another caller with the same ones may have found the answer already.
    const known = fresh(reference, access);
    if (known !== undefined) return known;
    const perEndpoint = namesOf(reference).map((name) => keys.fingerprints([name]).join());
    const key = [reference.canonical, ...perEndpoint].join(' ');
    const running = lookups.get(key);
    if (running !== undefined) {
      askers.each(running.askers.join);
      return running.found;
    }
    const found = ask(reference, access, keys, askers).finally(() => lookups.delete(key));
    lookups.set(key, { found, askers });
    return found;
  }

  async function ask(reference: Reference, access: Access, keys: Keys, askers: Askers): Promise<Resolution> {
    const owners = keys.fingerprints(namesOf(reference));
    const previous = reference.digest === undefined ? memory.last(reference, owners, access) : undefined;
    const { entry, owner, outcome } = await lookup({
      reference,
      endpoints: options.endpointsOf(reference),
      credentials: keys.candidates,
      askers,
      budgetMs: options.timeoutMs * 3,
      signal: ended.signal,
      ...(previous === undefined ? {} : { previous }),
    });
    options.onCache?.(outcome === 'revalidated' ? 'revalidated' : 'miss');
    const isKnown = reference.digest !== undefined && cache.digest(reference.digest) !== undefined;
    if (!isKnown) cache.setTag(reference.canonical, owner, entry);
    return resolutionOf(entry);
  }

  async function tags(image: string, access: Access, signal: AbortSignal): Promise<readonly string[]> {
    const until = AbortSignal.any([ended.signal, signal]);
    const reference = parse(image);
    if (reference instanceof ImageError) throw reference;
    // A mirror may know only the tags that somebody has pulled through it, so the source comes first.
    const endpoints = options.endpointsOf(reference).filter((endpoint) => endpoint.resolvesTags);
    const endpoint = endpoints.find(({ isSource }) => isSource) ?? endpoints[0];
    if (endpoint === undefined) return [];
    const keys = await untilAborted(keyring.open(access, until), until);
    const isPrivate = options.isPrivate(reference.name) || options.isPrivate(endpoint.credentialName);
    const askers = createAskers(access.namespace);
    const own = await keys.candidates(endpoint.credentialName, until, askers);
    const place = placeOf({ endpoint, reference });
    const claim = {
      host: endpoint.host,
      project: place.project.key,
      askers,
      standing: () => circuits.standing(place),
    };
    const release = await limiter.acquire(claim, until);
    try {
      const credentials = isPrivate ? own : [...own, undefined];
      return await listTags({ reference, endpoint, credentials, isPrivate, signal: until }, registry.send, now);
    } finally {
      release();
    }
  }

  function isDue(image: string, access: Access): boolean {
    if (ended.signal.aborted || (failures.get(keyOf(image, access))?.retryAt ?? 0) > now()) return false;
    const reference = parse(image);
    return reference instanceof ImageError || fresh(reference, access) === undefined;
  }

  function request(image: string, access: Access, mayStart = () => true): boolean {
    if (!isDue(image, access)) return true;
    const key = keyOf(image, access);
    const reference = parse(image);
    const [host, project] =
      reference instanceof ImageError ? ['', ''] : [reference.registry, reference.repository.split('/', 1)[0] ?? ''];
    const line = { namespace: access.namespace, host, project };
    if (flights.has(key)) void fly(image, access);
    else if (!starts.has(line, key)) {
      if (!room.enter(access.namespace, key)) return false;
      if (!mayStart()) room.leave(access.namespace, key);
      else {
        starts.add(line, key, () => {
          room.leave(access.namespace, key);
          return isDue(image, access) ? fly(image, access) : undefined;
        });
      }
    }
    return true;
  }

  return {
    known(image, access) {
      const reference = parse(image);
      if (reference instanceof ImageError) return undefined;
      const current = fresh(reference, access);
      const answered = current ?? stale(reference, access);
      if (answered === undefined) return undefined;
      options.onCache?.(current === undefined ? 'stale' : 'hit');
      const { platforms, isIndex } = answered;
      if (current === undefined) return { platforms, ...(isIndex === undefined ? {} : { isIndex }), isStale: true };
      return isIndex === undefined ? { platforms } : { platforms, isIndex };
    },
    isStale(image, access) {
      const reference = parse(image);
      return !(reference instanceof ImageError) && fresh(reference, access) === undefined;
    },
    failure(image, access) {
      const reference = parse(image);
      const isKnown =
        !(reference instanceof ImageError) && (fresh(reference, access) ?? stale(reference, access)) !== undefined;
      return isKnown ? undefined : failures.get(keyOf(image, access));
    },
    request,
    onSettled: (listener) => void listeners.push(listener),
    async resolve(image, access, signal) {
      signal.throwIfAborted();
      const reference = parse(image);
      const known = reference instanceof ImageError ? undefined : fresh(reference, access);
      return known ?? untilAborted(fly(image, access), signal);
    },
    tags,
    pending: () => flights.size + starts.size,
    failing: () => failures.count(),
    forgive() {
      generation += 1;
      lookup.forgive();
      void inTurns(turns, failures.keys(), (key) => {
        failures.forgive(key);
        // A canonical name contains no space; an access key may contain anything.
        for (const listener of listeners) listener(key.split(' ', 1)[0] ?? key);
      });
    },
  };
}

function resolutionOf({ digest, found, source }: TagEntry): Resolution {
  return { digest, ...found, source };
}
