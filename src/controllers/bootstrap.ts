import type { Clock } from '../kit/clock.ts';

/**
 * Says whether existing nodes may be tainted: every pod and DaemonSet of the first list was decided, or the time is over. Before
 * that, a taint could keep away pods that have no toleration yet.
 */
export type Bootstrap = {
  /** Sets the objects to wait for and starts the time. */
  begin(keys: Iterable<string>, signal: AbortSignal): void;
  /** The object was placed, skipped or held, had a failed lookup, or is gone. */
  decided(key: string): void;
  over(): boolean;
};

/** The interval at which the objects that are still in line are checked once the time is over. */
const LINE_MS = 15_000;

/** Creates a bootstrap that has not begun. `onOver` is called once. Keys of pods and DaemonSets must differ. */
export function createBootstrap(options: {
  readonly timeoutMs: number;
  /** Whether an object only waits in line for others (a DaemonSet that waits to roll). The time does not end the wait for it. */
  readonly isInLine?: (key: string) => boolean;
  readonly clock: Clock;
  readonly onOver: (undecided: number) => void;
}): Bootstrap {
  const undecided = new Set<string>();
  let begun = false;
  let over = false;

  /** Once the time is over, waits only for the objects in line. */
  async function expire(signal: AbortSignal): Promise<void> {
    for (let ms = options.timeoutMs; !over; ms = LINE_MS) {
      await options.clock.delay(ms, signal);
      if (signal.aborted || over) return;
      const late = [...undecided].filter((key) => options.isInLine?.(key) !== true);
      if (late.length === undecided.size) return end();
      for (const key of late) undecided.delete(key);
    }
  }

  function end(): void {
    if (over) return;
    over = true;
    options.onOver(undecided.size);
    undecided.clear();
  }

  return {
    begin(keys, signal) {
      for (const key of keys) undecided.add(key);
      begun = true;
      if (undecided.size === 0) end();
      else void expire(signal);
    },
    decided(key) {
      if (begun && !over && undecided.delete(key) && undecided.size === 0) end();
    },
    over: () => over,
  };
}
