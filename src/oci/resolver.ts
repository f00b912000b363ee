import { setMaxListeners } from 'node:events';
import { untilAborted } from '../kit/abort.ts';
import { type Askers, createAskers } from './askers.ts';
import type { Found, ImageCache, TagEntry } from './cache.ts';
import { createCircuits } from './circuit.ts';
import { type Access, accessKey, createKeyring, type KeyringOptions, type Keys } from './credentials/keyring.ts';
import type { Endpoint } from './endpoint.ts';
import { ImageError, type ImageErrorCode } from './errors.ts';
import { createFailures, type Failure, type Failures, unexpected, unreadable } from './failures.ts';
import { BOUNDS, createLimiter } from './limiter.ts';
import { createLookup } from './lookup.ts';
import { createMemory } from './memory.ts';
import { createReferenceReader, type Reference } from './reference.ts';
import { createRegistry, type RegistryOptions } from './registry.ts';
import { createStarts, STARTS } from './starts.ts';
import { withDeadline } from './transport.ts';

/** What a look-up found out. */
export type Resolution = Found & {
  /** Of what the name stands for. */
  readonly digest?: string;
  /** host[:port] of the endpoint that answered; absent where the digest was known. */
  readonly source?: string;
};

/** What is known of an image: what it runs on, and whether it is an index, which the access of a volume always learns. */
export type Known = Pick<Found, 'platforms' | 'isIndex'>;

/** A whole look-up gets three times `timeoutMs`; its turn it waits for as long, or longer where the host answers others. */
export type ResolverOptions = KeyringOptions &
  RegistryOptions & {
    readonly cache: ImageCache;
    /** What failed before, where this one takes the place of another; default: nothing. */
    readonly failures?: Failures;
    /** Where an image may be asked for, in order; never empty. */
    readonly endpointsOf: (reference: Reference) => readonly Endpoint[];
    /** Whether an image's name may never be asked for anonymously. */
    readonly isPrivate: (name: string) => boolean;
    /** Milliseconds: a tag's time to live, the same for `imagePullPolicy: Always` and `latest`, and for lasting failures. */
    readonly ttl: { readonly tag: number; readonly always: number; readonly failure: number };
    /** Look-ups in flight for one host. */
    readonly maxInFlight: number;
    /** From 0 to 1, 1 excluded. */
    readonly random: () => number;
    /** Ends everything: look-ups, connections, timers. */
    readonly signal: AbortSignal;
    /** After each look-up: `ok`, or the error's code. */
    readonly onResolution?: (result: 'ok' | ImageErrorCode) => void;
    readonly onCache?: (result: 'hit' | 'miss' | 'stale' | 'revalidated') => void;
  };

/** What images can run on, from memory or by asking their registries. No method but `resolve` waits. */
export type Resolver = {
  /**
   * From memory: a fresh tag, a known digest, or a tag whose last revalidation failed. Undefined otherwise, also for a
   * malformed name. Asks nobody.
   */
  known(image: string, access: Access): Known | undefined;
  /** Whether what `known` answers is older than its time: its last revalidation failed. */
  isStale(image: string, access: Access): boolean;
  /** The last look-up's failure, where nothing is known. */
  failure(image: string, access: Access): Failure | undefined;
  /**
   * Asks for a lookup. Does nothing while one runs, while the image is known and fresh, and before `retryAt`. `mayStart` is
   * called just before a lookup would begin, and may prevent that.
   */
  request(image: string, access: Access, mayStart?: () => boolean): void;
  /** Called after each look-up's end with the image's canonical name (`canonicalName` of reference.ts). */
  onSettled(listener: (canonical: string) => void): void;
  /**
   * Waits for an answer, even before `retryAt`.
   *
   * @throws ImageError, or the signal's reason; the look-up then goes on for others
   */
  resolve(image: string, access: Access, signal: AbortSignal): Promise<Resolution>;
  /** Look-ups that run or wait for their turn. */
  pending(): number;
  /** Images, per access, whose last look-up failed. */
  failing(): number;
  /** Credentials or mirrors have changed: what failed may be asked for again at once, which the listeners are told. */
  forgive(): void;
};

/** A lookup under way. Where it waits for a place, it has its turn when the first of the namespaces has. */
type Flight = { readonly found: Promise<Resolution>; readonly askers: Askers };

/** @throws Error for CIDRs in `addresses` that are none */
export function createResolver(options: ResolverOptions): Resolver {
  const { now, cache } = options;
  const failures = options.failures ?? createFailures(options);
  const keyring = createKeyring(options);
  const registry = createRegistry(options);
  const lookup = createLookup({
    cache,
    now,
    circuits: createCircuits(options),
    limiter: createLimiter({ perHost: options.maxInFlight, ...BOUNDS }),
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

  const parse = createReferenceReader(options.maxEntries);
  const listeners: ((canonical: string) => void)[] = [];
  /** How often {@link Resolver.forgive} was called. */
  let generation = 0;
  /** By what was asked for: image and access. */
  const flights = new Map<string, Flight>();
  /** By what is asked of the registry: image and the credentials that are tried. */
  const lookups = new Map<string, Flight>();
  const starts = createStarts(STARTS);

  function canonicalOf(image: string): string {
    const parsed = parse(image);
    return parsed instanceof ImageError ? image : parsed.canonical;
  }

  const keyOf = (image: string, access: Access): string => `${canonicalOf(image)} ${accessKey(access)}`;

  /** The names that a pull secret may match for an image. */
  const namesOf = (reference: Reference): string[] =>
    options.endpointsOf(reference).map((endpoint) => endpoint.credentialName);

  const ownersOf = (reference: Reference, access: Access): readonly string[] =>
    keyring.fingerprints(access, namesOf(reference));
  const memory = createMemory({ cache, ttl: options.ttl, ownersOf, now });

  /** What is known and holds without asking. */
  function fresh(reference: Reference, access: Access): Resolution | undefined {
    const known = memory.fresh(reference, access);
    if (known === undefined) return undefined;
    if (known.entry !== undefined) return resolutionOf(known.entry);
    return { ...(reference.digest === undefined ? {} : { digest: reference.digest }), ...known.found };
  }

  /** What was known, where the last attempt to revalidate it failed: it holds until one succeeds. */
  function stale(reference: Reference, access: Access): Resolution | undefined {
    if (failures.get(keyOf(reference.text, access)) === undefined) return undefined;
    const entry = memory.last(reference, ownersOf(reference, access), access);
    return entry === undefined ? undefined : resolutionOf(entry);
  }

  /** Starts a look-up, or joins the one that runs. The promise never rejects unobserved. */
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
          // What ends because everything ends is no failure of the image.
          if (ended.signal.aborted) throw ended.signal.reason;
          const known = error instanceof ImageError ? error : unexpected(error);
          failures.add(key, known, options.ttl.failure, access.namespace);
          // It was asked with what is not in force any more.
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
    // Now that it is clear who asks: somebody with the same credential may have been here.
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

  function isDue(image: string, access: Access): boolean {
    if (ended.signal.aborted || (failures.get(keyOf(image, access))?.retryAt ?? 0) > now()) return false;
    const reference = parse(image);
    return reference instanceof ImageError || fresh(reference, access) === undefined;
  }

  function request(image: string, access: Access, mayStart = () => true): void {
    if (!isDue(image, access)) return;
    const key = keyOf(image, access);
    const reference = parse(image);
    const host = reference instanceof ImageError ? '' : reference.registry;
    if (flights.has(key)) void fly(image, access);
    else if (!starts.has(access.namespace, host, key) && mayStart()) {
      starts.add(access.namespace, host, key, () => (isDue(image, access) ? fly(image, access) : undefined));
    }
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
    pending: () => flights.size + starts.size,
    failing: () => failures.count(),
    forgive() {
      generation += 1;
      lookup.forgive();
      for (const key of failures.keys()) {
        failures.forgive(key);
        // A canonical name holds no space; an access key may hold anything.
        for (const listener of listeners) listener(key.split(' ', 1)[0] ?? key);
      }
    },
  };
}

function resolutionOf({ digest, found, source }: TagEntry): Resolution {
  return { digest, ...found, source };
}
