import type { Clock } from '../kit/clock.ts';

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

/** Between two looks at who is still in line, once the time is over. */
const LINE_MS = 15_000;

/** Creates it. `onOver` is called once. Keys of pods and DaemonSets must differ. */
export function createBootstrap(options: {
  readonly timeoutMs: number;
  /** Whether the time does not run out on an object: it only waits until others have finished. */
  readonly isInLine?: (key: string) => boolean;
  readonly clock: Clock;
  readonly onOver: (open: number) => void;
}): Bootstrap {
  const open = new Set<string>();
  let begun = false;
  let over = false;

  /** When the time is over, what waits in line is all that is still waited for. */
  async function expire(signal: AbortSignal): Promise<void> {
    for (let ms = options.timeoutMs; !over; ms = LINE_MS) {
      await options.clock.delay(ms, signal);
      if (signal.aborted || over) return;
      const late = [...open].filter((key) => options.isInLine?.(key) !== true);
      if (late.length === open.size) return end();
      for (const key of late) open.delete(key);
    }
  }

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
      else void expire(signal);
    },
    decided(key) {
      if (begun && !over && open.delete(key) && open.size === 0) end();
    },
    over: () => over,
  };
}
