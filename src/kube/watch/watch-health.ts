import type { Clock } from '../../kit/clock.ts';
import type { ApiRequest } from '../client.ts';

/** A kind that is watched, and since when it is not kept in step. Milliseconds on the monotonic clock. */
export type WatchState = { readonly kind: string; readonly brokenSinceMs: number | undefined };

/** From when to when the API server has answered without a gap, as far as we know. Milliseconds on the monotonic clock. */
export type Answering = { readonly sinceMs: number; readonly lastMs: number };

/** When the API server answers. */
export type Answers = {
  /** A request has ended. */
  finished(request: Pick<ApiRequest, 'code'>): void;
  /** Something came over a watch. */
  heard(): void;
  /** Undefined before the first answer. */
  period(): Answering | undefined;
};

/** A watch that is broken for this long while the API server answers makes a replica not ready. */
const BROKEN_MS = 120_000;
/** Without an answer for so long the API server was away. Watches that work say something every minute. */
const GAP_MS = 90_000;

/**
 * The kinds that are broken for two minutes in which the API server answered other requests. An API server that answers
 * nothing changes nothing: the time without answers is not counted, and what was broken before stays so.
 */
export function brokenWatches(states: readonly WatchState[], answering: Answering | undefined): string[] {
  if (answering === undefined) return [];
  return states.flatMap(({ kind, brokenSinceMs }) => {
    if (brokenSinceMs === undefined) return [];
    const begin = Math.max(brokenSinceMs, answering.sinceMs);
    return answering.lastMs - begin >= BROKEN_MS ? `watch of ${kind}` : [];
  });
}

/** Notes the answers of the API server. */
export function createAnswers(clock: Pick<Clock, 'monotonic'>): Answers {
  let answering: { sinceMs: number; lastMs: number } | undefined;

  function heard(): void {
    const now = clock.monotonic();
    if (answering === undefined || now - answering.lastMs > GAP_MS) answering = { sinceMs: now, lastMs: now };
    else answering.lastMs = now;
  }

  return {
    heard,
    finished({ code }) {
      if (code.startsWith('2')) heard();
    },
    period: () => answering,
  };
}
