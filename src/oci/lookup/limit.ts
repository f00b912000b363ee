import type { RateLimit } from '../resolver-telemetry.ts';

/** What a registry says of its limit. */
export type Left = Omit<RateLimit, 'registry'>;

type Limit = {
  /** Tries per second. */
  rate: number;
  pauseMs: number;
  refusedAt: number;
  /** When the next try may begin. */
  nextAt: number;
  growth: number;
  /** Until when it counts as answering, because it answered before its last pause. */
  hopeUntil: number;
  /** Whether nothing was answered since the last refusal. */
  isRefusing: boolean;
  /** Whether the registry refused nothing yet, and only says that few requests are left. */
  readonly isForeseen?: boolean;
};

/** What an account's answers have shown of its limit. */
export type Limited = {
  answeredAt: number;
  /** When the present second of answers began, and how many there were. */
  recent: { at: number; count: number };
  limit?: Limit;
};

/** Milliseconds to pause where the registry names no time; doubled up to {@link LONGEST_PAUSE}: a used-up account is asked once a minute. */
const FIRST_PAUSE = 1000;
export const LONGEST_PAUSE = 60_000;
/** The longest pause that a registry may ask for, in milliseconds. */
const LONGEST_RETRY_AFTER = 300_000;
/** The longest pause after which an account that answered before it is waited for, in times of the patience. */
const MOST_HOPEFUL = 3;
/** Tries per second: the slowest pace, what each answer adds to it before the second refusal and after it, and what a refusal leaves. */
const SLOWEST = 0.2;
const FAST_GROWTH = 0.5;
const GROWTH = 0.07;
const DECREASE = 0.8;
/** The part of a limit after which tries slow down if the registry says how much is left, and the window if it names none. */
const FEW = 0.1;
const WINDOW_SECONDS = 60;
/** A limit that refused nothing for so long is forgotten, in milliseconds. */
export const FORGOTTEN = 600_000;

/**
 * Finds limits out. A refusal stops all tries of an account for as long as the registry asks, else for a second, doubled while
 * refusals go on. Then one try goes first. The pace grows with each answer, fast until the second refusal, and falls by a fifth with
 * each refusal. Where a registry says how much is left, the last tenth is asked for slowly.
 *
 * @param patienceMs milliseconds without an answer after which an account makes no progress
 */
export function createLimits(now: () => number, patienceMs: number) {
  /** Returns the limit of an account, unless it has refused nothing for long. */
  function limitOf(account: Limited): Limit | undefined {
    if (account.limit !== undefined && now() - account.limit.refusedAt >= FORGOTTEN) delete account.limit;
    return account.limit;
  }

  return {
    limitOf,
    isProgressing: ({ answeredAt, limit }: Limited): boolean =>
      limit === undefined || now() - answeredAt < patienceMs || now() < limit.hopeUntil,
    countAnswer(account: Limited): void {
      if (now() - account.recent.at >= 1000) account.recent = { at: now(), count: 0 };
      account.recent.count += 1;
    },
    learnAnswer(account: Limited, startedAt: number): void {
      account.answeredAt = now();
      const { limit } = account;
      if (limit === undefined || startedAt < limit.refusedAt) return;
      limit.isRefusing = false;
      limit.pauseMs = FIRST_PAUSE;
      limit.rate += limit.growth;
    },
    learnRefusal(account: Limited, startedAt: number, retryAfterMs: number | undefined): void {
      const limit = limitOf(account);
      const asked = retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, LONGEST_RETRY_AFTER);
      // Those that were under way at the last refusal tell nothing new.
      if (limit !== undefined && startedAt < limit.refusedAt) {
        limit.nextAt = Math.max(limit.nextAt, now() + (asked ?? 0));
        return;
      }
      const rate = limit?.rate ?? account.recent.count;
      const pauseMs = limit?.isRefusing ? Math.min(limit.pauseMs * 2, LONGEST_PAUSE) : FIRST_PAUSE;
      const pause = asked ?? pauseMs;
      const hasAnswered = limit === undefined ? account.answeredAt > Number.NEGATIVE_INFINITY : !limit.isRefusing;
      // It answered before the pause, so it is likely to answer after it.
      const isShort = hasAnswered && pause <= MOST_HOPEFUL * patienceMs;
      account.limit = {
        hopeUntil: isShort ? now() + pause + patienceMs : (limit?.hopeUntil ?? 0),
        // A refused probe says nothing of the pace.
        rate: limit?.isRefusing ? rate : Math.max(rate * DECREASE, SLOWEST),
        growth: limit === undefined ? FAST_GROWTH : GROWTH,
        pauseMs,
        refusedAt: now(),
        nextAt: now() + pause,
        isRefusing: true,
      };
    },
    /**
     * Learns what the registry says. What is left is spread over the window, but never slower than {@link SLOWEST}: a word may delay
     * no more than refusals. Returns whether few requests are left.
     */
    learnLeft(account: Limited, { limit: most, remaining, windowSeconds }: Left): boolean {
      const limit = limitOf(account);
      const areFew = remaining <= most * FEW;
      const rate = Math.max(remaining / (windowSeconds || WINDOW_SECONDS), SLOWEST);
      if (!areFew && limit?.isForeseen) delete account.limit;
      if (areFew && limit !== undefined) limit.rate = Math.min(limit.rate, rate);
      if (areFew && limit === undefined) {
        account.limit = {
          hopeUntil: now() + patienceMs,
          rate,
          growth: FAST_GROWTH,
          pauseMs: FIRST_PAUSE,
          refusedAt: now(),
          nextAt: now() + 1000 / rate,
          isRefusing: false,
          isForeseen: true,
        };
      }
      return areFew;
    },
  };
}
