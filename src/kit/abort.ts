/**
 * The actions that wait for each signal. A signal gets one listener, which calls all of them. When a listener is removed, Node.js searches
 * the signal's list from its start, so removing n of them one by one takes time proportional to n².
 */
const waiting = new WeakMap<AbortSignal, Waiting>();

type Waiting = { readonly actions: Set<() => void>; readonly listener: () => void };

/**
 * Calls `action` once when the signal aborts, or at once if it has already aborted. Returns a function that cancels
 * this; call it when the work is over. All actions of a signal share one listener.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  if (signal.aborted) {
    action();
    return () => {};
  }
  const all = waiting.get(signal) ?? listenTo(signal);
  // Wrapped, because the same action may be added twice and each entry must be its own.
  const entry = (): void => action();
  all.actions.add(entry);
  return () => {
    if (!all.actions.delete(entry) || all.actions.size > 0) return;
    // A listener left in place would keep whatever created the signal in memory.
    signal.removeEventListener('abort', all.listener);
    waiting.delete(signal);
  };
}

function listenTo(signal: AbortSignal): Waiting {
  const actions = new Set<() => void>();
  const listener = (): void => {
    waiting.delete(signal);
    for (const action of actions) action();
    actions.clear();
  };
  signal.addEventListener('abort', listener, { once: true });
  const all = { actions, listener };
  waiting.set(signal, all);
  return all;
}

/**
 * Waits for a promise, but no longer than until the signal aborts; the work itself may go on. Throws what the promise
 * throws, or the signal's reason.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(
      (value) => {
        forget();
        resolve(value);
      },
      (error: unknown) => {
        forget();
        reject(error);
      },
    );
  });
}

/** Resolves when the signal aborts. */
export function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}
