import { backoff, type Clock } from '../kit/clock.ts';
import type { ApiClient, ApiVerb } from './api-client.ts';
import { ApiError, ConnectionError } from './errors.ts';

export type RetryOptions = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Whether another attempt may help; default: {@link isTemporary}. */
  readonly may?: (error: unknown) => boolean;
  /** Called before each wait. */
  readonly onRetry?: (error: unknown, inMs: number) => void;
};

/** About eight seconds in all: a Lease that cannot be renewed for longer is lost anyway. */
const ATTEMPTS = 5;
const FIRST_MS = 500;
const LONGEST_MS = 8_000;

/** These are safe to send twice: every patch of the program tests what it changes. */
const REPEATABLE: ReadonlySet<ApiVerb> = new Set(['get', 'list', 'patch', 'delete']);

/** Whether the same request may succeed later: 429, 5xx, no answer. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  return error instanceof ApiError && (error.status === 429 || error.status >= 500);
}

/** Runs `action` until it succeeds, at most a few times, and honours `Retry-After`. Throws what the last attempt threw. */
export async function retrying<T>(action: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal, may = isTemporary, onRetry } = options;
  for (let attempt = 0; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (attempt + 1 >= ATTEMPTS || signal.aborted || !may(error)) throw error;
      const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
      const inMs = Math.max(asked, backoff(attempt, FIRST_MS, LONGEST_MS, clock.random));
      onRetry?.(error, inMs);
      await clock.delay(inMs, signal);
      signal.throwIfAborted();
    }
  }
}

/** Creates a client that retries reads, patches and deletions; a request that creates or replaces an object is sent once. */
export function createRetryingClient(client: ApiClient, options: RetryOptions): ApiClient {
  return {
    ...client,
    request(verb, path, request = {}) {
      const send = () => client.request(verb, path, request);
      if (!REPEATABLE.has(verb)) return send();
      return retrying(send, { ...options, signal: request.signal ?? options.signal });
    },
  };
}
