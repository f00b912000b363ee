import { setMaxListeners } from 'node:events';
import { onAbort, untilAborted } from '../../kit/abort.ts';
import { backoff, type Clock } from '../../kit/clock.ts';
import { createTurns } from '../../kit/fairness/turns.ts';
import { type Access, accessKey } from '../../oci/credentials/keyring.ts';
import { ImageError, type ImageErrorCode } from '../../oci/errors.ts';
import { canonicalName } from '../../oci/reference.ts';
import type { Look, TagResolver } from '../../oci/resolver.ts';

/** An image that waits for its registry, and how far all lookups are. */
export type PatientWaiting = {
  /** host[:port]; the image where no registry was at fault. */
  readonly registry: string;
  readonly code: ImageErrorCode;
  readonly againInMs: number;
  /** Lookups that have ended, and all that were asked for. */
  readonly done: number;
  readonly total: number;
};

type PatienceOptions = {
  readonly clock: Clock;
  /** The time in which all lookups may be tried again, or wait in a registry's line. */
  readonly limit: ReturnType<typeof createLimit>;
  readonly onWait: (waiting: PatientWaiting) => void;
  /** Counts the lookups that have ended, and all that were asked for. */
  readonly counts: { done: number; total: number };
  readonly signal: AbortSignal;
};

/** Milliseconds, where nobody named a limit: longer only as long as images become known, as where a registry limits requests. */
const USUAL = 120_000;
const USUAL_MOST = 15 * 60_000;

/** Creates the limit; its time does not run yet. `ms`: exactly so long; undefined: two minutes, and on while there is progress. */
export function createLimit(clock: Clock, ms: number | undefined, signal: AbortSignal) {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  onAbort(signal, () => over.abort(signal.reason));
  let [begunAt, progressAt] = [Number.NaN, Number.NEGATIVE_INFINITY];
  let cancel = (): void => {};
  const endsAt = () => {
    const most = begunAt + (ms ?? USUAL_MOST);
    return Math.min(most, Math.max(begunAt + (ms ?? USUAL), progressAt + WITHOUT_PROGRESS));
  };
  const watch = (): void => {
    const left = endsAt() - clock.steady();
    if (left <= 0) over.abort();
    else cancel = clock.after(left, watch);
  };
  return {
    /** Milliseconds; 0: every image is asked for once. */
    ms: ms ?? USUAL,
    signal: over.signal,
    /** Begins to count, if that has not begun; returns when it ends as things stand. */
    start(): number {
      if (Number.isNaN(begunAt)) {
        begunAt = clock.steady();
        watch();
        onAbort(signal, () => cancel());
      }
      return endsAt();
    },
    /** An image was looked up. */
    progressed(): void {
      progressAt = clock.steady();
    },
  };
}

/** Lookups that are handed to the resolver at once, for each registry. Those that wait for a later try do not count. */
const AT_ONCE = 64;
/** Milliseconds between two tries where the registry names no time. */
const FIRST = 1_000;
const LONGEST = 15_000;
/** The least wait where a registry names a time, and a spread, so that not all images come back in one moment. Milliseconds. */
const LEAST = 100;
const SPREAD = 400;
/** How long a registry may answer for no image before it is given up: somebody waits. Milliseconds. */
export const WITHOUT_PROGRESS = 15_000;

type PatientPlace = {
  readonly host: string;
  /** The images that have not ended. */
  open: number;
  /** When it last answered for an image, or was first asked. */
  progressAt: number;
};

type PatientState = PatienceOptions & {
  readonly resolver: TagResolver;
  readonly turns: ReturnType<typeof createTurns>;
  readonly places: Map<string, PatientPlace>;
  /** The lookups that `look` has asked for, by image and access; and those of them that have not ended. */
  readonly asked: Set<string>;
  readonly running: Set<string>;
  readonly listeners: ((canonical: string) => void)[];
};

/**
 * Creates a resolver that tries again what failed for the moment: after the time that the registry asks for, else with backoff,
 * while the registry makes progress, and all images together no longer than the limit. Commands use it, because they have no
 * later run. For them "not found" is an answer, at a mirror, too.
 *
 * An image counts as looked up (`onSettled`, `pending`, `look`) only when it is not tried again.
 */
export function createPatientResolver(resolver: TagResolver, options: PatienceOptions): TagResolver {
  setMaxListeners(0, options.signal);
  const state: PatientState = {
    ...{ ...options, resolver, turns: createTurns(), places: new Map() },
    ...{ asked: new Set(), running: new Set(), listeners: [] },
  };
  return {
    ...resolver,
    resolve: (image, access, until) =>
      patiently(state, image, until, (signal) => resolver.resolve(image, access, signal)),
    reach: (image, access, until, work) =>
      patiently(state, image, until, (signal) => resolver.reach(image, access, signal, work)),
    tags: (image, access, until) => patiently(state, image, until, (signal) => resolver.tags(image, access, signal)),
    look: (image, access, mayStart = () => true) => look(state, image, access, mayStart),
    onSettled: (listener) => void state.listeners.push(listener),
    pending: () => state.running.size,
  };
}

function look(state: PatientState, image: string, access: Access, mayStart: () => boolean): Look {
  const { resolver, asked, running, signal } = state;
  const key = `${image} ${accessKey(access)}`;
  const found = resolver.look(image, access, () => false);
  if (found.kind === 'known' && !found.isStale) return found;
  if (!asked.has(key) && !signal.aborted && mayStart()) start(state, key, image, access);
  if (found.kind === 'known') return found;
  if (found.kind === 'pending' || running.has(key)) return { kind: 'pending', isPlanned: true };
  // How long this command has tried says nothing about how long the controller has.
  return { ...found, isPlanned: true, sinceMs: 0 };
}

/** Looks an image up in the background. */
function start(state: PatientState, key: string, image: string, access: Access): void {
  const { resolver, signal, running } = state;
  state.asked.add(key);
  running.add(key);
  patiently(state, image, signal, (until) => resolver.resolve(image, access, until))
    .catch(() => undefined)
    .finally(() => {
      running.delete(key);
      if (!signal.aborted) for (const listener of state.listeners) listener(canonicalName(image));
    });
}

async function patiently<T>(
  state: PatientState,
  image: string,
  until: AbortSignal,
  attempt: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, counts, turns } = state;
  counts.total += 1;
  const place = placeOf(state, image);
  if (place.open === 0) place.progressAt = clock.steady();
  place.open += 1;
  const ask = (limit: AbortSignal) =>
    turns.run('', [[place.host, AT_ONCE]], limit, () => untilAborted(attempt(until), limit));
  try {
    let last: ImageError | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        const found = await (last === undefined ? ask(until) : again(state, ask, until, last, place));
        place.progressAt = clock.steady();
        state.limit.progressed();
        return found;
      } catch (error) {
        if (!(error instanceof ImageError) || error === last) throw error;
        if (!error.temporary) place.progressAt = clock.steady();
        const wait = waitAfter(state, error, failures, place);
        if (wait === undefined) throw error;
        last = error;
        state.onWait({ registry: error.endpoint ?? image, code: error.code, againInMs: wait, ...counts });
        await clock.delay(wait, until);
        until.throwIfAborted();
      }
    }
  } finally {
    place.open -= 1;
    counts.done += 1;
  }
}

function placeOf({ places }: PatientState, image: string): PatientPlace {
  const host = canonicalName(image).split('/', 1)[0] ?? '';
  const place = places.get(host) ?? { host, open: 0, progressAt: 0 };
  places.set(host, place);
  return place;
}

/** A later try ends with the limit, or with the registry's progress, whatever the registry does; the last failure stands then. */
async function again<T>(
  { clock, limit }: PatientState,
  ask: (limit: AbortSignal) => Promise<T>,
  until: AbortSignal,
  last: ImageError,
  place: PatientPlace,
): Promise<T> {
  const end = new AbortController();
  const forget = onAbort(limit.signal, () => end.abort());
  let cancel = (): void => {};
  const watch = (): void => {
    const left = place.progressAt + WITHOUT_PROGRESS - clock.steady();
    if (left <= 0) end.abort();
    else cancel = clock.after(left, watch);
  };
  watch();
  try {
    return await ask(end.signal);
  } catch (error) {
    until.throwIfAborted();
    throw end.signal.aborted && !(error instanceof ImageError) ? last : error;
  } finally {
    cancel();
    forget();
  }
}

/** Returns how long to wait before the next try; undefined if there is none. */
function waitAfter(
  { clock, limit }: PatientState,
  error: ImageError,
  failures: number,
  place: PatientPlace,
): number | undefined {
  if (!error.temporary || error.code === 'not-found' || limit.ms === 0) return undefined;
  const now = clock.steady();
  const endsAt = limit.start();
  const wait =
    error.retryAfterMs === undefined
      ? backoff(failures, FIRST, LONGEST, clock.random)
      : Math.max(error.retryAfterMs, LEAST) + SPREAD * clock.random();
  return now + wait < Math.min(endsAt, place.progressAt + WITHOUT_PROGRESS) ? wait : undefined;
}
