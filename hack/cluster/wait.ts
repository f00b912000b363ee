import { setTimeout as delay } from 'node:timers/promises';

const MOST_PAUSE_MS = 25;

/**
 * Waits until the condition returns something other than false or undefined, and returns that. A condition that throws
 * is called again; when the time is over, its last error is named.
 */
export async function waitFor<T>(
  description: string,
  condition: () => Promise<T | false | undefined>,
  timeoutMs = 30_000,
  signal?: AbortSignal,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  for (let pause = 1; ; pause = Math.min(pause * 2, MOST_PAUSE_MS)) {
    try {
      const result = await condition();
      if (result !== false && result !== undefined) return result;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    signal?.throwIfAborted();
    if (performance.now() > deadline) throw timedOut(description, timeoutMs, lastError);
    await delay(pause, undefined, signal ? { signal } : {});
  }
}

function timedOut(description: string, timeoutMs: number, cause: unknown): Error {
  const reason = cause instanceof Error ? `: ${cause.message}` : '';
  return new Error(`waited ${timeoutMs / 1000} s in vain for ${description}${reason}`, { cause });
}
