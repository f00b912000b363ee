import type { Clock } from '../kube/clock.ts';

/**
 * Whether existing nodes may be tainted: every pod and DaemonSet of the first list has had its turn, or the time is
 * over. Until then a taint could lock out what has no toleration yet.
 */
export type Bootstrap = {
  /** Sets what is to have its turn and starts the time. */
  begin(keys: Iterable<string>, signal: AbortSignal): void;
  /** The object was placed, skipped, held, had a failed look-up, or is gone. */
  decided(key: string): void;
  over(): boolean;
};

/** Creates it. `onOver` is called once. Keys of pods and DaemonSets must differ. */
export function createBootstrap(options: {
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly onOver: (open: number) => void;
}): Bootstrap {
  const open = new Set<string>();
  let begun = false;
  let over = false;

  function end(): void {
    if (over) return;
    over = true;
    options.onOver(open.size);
    open.clear();
  }

  return {
    begin(keys, signal) {
      for (const key of keys) open.add(key);
      begun = true;
      if (open.size === 0) end();
      else void options.clock.delay(options.timeoutMs, signal).then(() => signal.aborted || end());
    },
    decided(key) {
      if (begun && !over && open.delete(key) && open.size === 0) end();
    },
    over: () => over,
  };
}
