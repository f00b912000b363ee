/**
 * What waits for each signal. The one listener that a signal gets calls them all: Node.js searches a signal's list of
 * listeners from its start whenever one is removed, so that thousands of them cost the square of their number.
 */
const waiting = new WeakMap<AbortSignal, Waiting>();

type Waiting = { readonly actions: Set<() => void>; readonly listener: () => void };

/**
 * Calls `action` once when the signal aborts, or at once where it has. The function that is returned takes that back; call it
 * when the work is over. One signal holds one listener for all who wait.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  if (signal.aborted) {
    action();
    return () => {};
  }
  const all = waiting.get(signal) ?? listenTo(signal);
  // A function of its own, as the same action may be there twice.
  const entry = (): void => action();
  all.actions.add(entry);
  return () => {
    if (!all.actions.delete(entry) || all.actions.size > 0) return;
    // A listener that stays would keep what made the signal in memory.
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

/** Waits for something that goes on when the signal aborts. Throws what it throws, or the signal's reason. */
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
