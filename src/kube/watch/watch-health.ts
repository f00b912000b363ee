import type { Clock } from '../../kit/clock.ts';
import type { ApiRequest } from '../api-client.ts';

/** A watched kind, and since when its store is out of step. Milliseconds on the monotonic clock. */
type WatchState = { readonly kind: string; readonly brokenSinceMs: number | undefined };

/** The last period in which the API server answered without a gap, as far as this process saw. Milliseconds on the monotonic clock. */
export type Answering = { readonly sinceMs: number; readonly lastMs: number };

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'apply', 'delete']);

/** A watch that is broken for this long while the API server answers makes a replica not ready. */
const BROKEN_MS = 120_000;
/** After this long without an answer, the API server counts as away. Watches that work send something every minute. */
const GAP_MS = 90_000;

/**
 * Returns the kinds whose watch was broken for two minutes while the API server answered other requests. While the API
 * server answers nothing, nothing changes: that time is not counted, and a watch that was broken before stays broken.
 */
export function brokenWatches(states: readonly WatchState[], answering: Answering | undefined): string[] {
  if (answering === undefined) return [];
  return states.flatMap(({ kind, brokenSinceMs }) => {
    if (brokenSinceMs === undefined) return [];
    const begin = Math.max(brokenSinceMs, answering.sinceMs);
    return answering.lastMs - begin >= BROKEN_MS ? `watch of ${kind}` : [];
  });
}

/** Creates the record of when the API server answers and stores a write. `received` gets the bytes of each event of a watch. */
export function createAnswers(clock: Pick<Clock, 'monotonic'>, received: (bytes: number) => void = () => {}) {
  let answering: { sinceMs: number; lastMs: number } | undefined;
  let lastWriteMs: number | undefined;

  function heard(bytes?: number): void {
    const now = clock.monotonic();
    if (answering === undefined || now - answering.lastMs > GAP_MS) answering = { sinceMs: now, lastMs: now };
    else answering.lastMs = now;
    if (bytes !== undefined) received(bytes);
  }

  return {
    /** Records that something of an answer arrived: the bytes of an event. */
    heard,
    /** Records the end of a request. */
    finished({ verb, resource, code }: Pick<ApiRequest, 'verb' | 'resource' | 'code'>): void {
      if (!code.startsWith('2')) return;
      heard();
      if (WRITES.has(verb) && resource !== 'events') lastWriteMs = clock.monotonic();
    },
    /** The current period; undefined before the first answer. */
    period: (): Answering | undefined => answering,
    /**
     * Returns when the API server last stored a write, in milliseconds on the monotonic clock; undefined: it stored none. A proof that
     * it is not the API server that fails. Events do not count, because large clusters keep them in an etcd of their own.
     */
    lastWriteMs: (): number | undefined => lastWriteMs,
  };
}
