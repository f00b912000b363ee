import type { Clock } from '../../kit/clock.ts';

type Kind = 'pod' | 'daemonset';

/** The interval at which the objects that are still in line are checked once the time is over. */
const LINE_MS = 15_000;

/**
 * Says whether existing nodes may be tainted: every pod and DaemonSet of the first list was decided, or the time is over. Before
 * that, a taint could keep away pods that have no toleration yet. The bootstrap begins with `begin`. `onOver` is called once.
 */
export function createBootstrap(options: {
  readonly timeoutMs: number;
  /** Whether a DaemonSet that had rolled out waits in line for others to roll. The time does not end the wait for it. */
  readonly isInLine?: (daemonSet: string) => boolean;
  /** Whether rollouts are stopped, and taints with them. The time does not end that. */
  readonly isStopped?: () => boolean;
  readonly clock: Clock;
  readonly onOver: (undecided: number) => void;
}) {
  /** The keys as the watches have them: a text of its own for every pod would take more memory than all of the rest here. */
  const undecided: Record<Kind, Set<string>> = { pod: new Set(), daemonset: new Set() };
  let begun = false;
  let over = false;

  const left = () => undecided.pod.size + undecided.daemonset.size;

  /** Once the time is over, waits only for the objects in line, and while rollouts are stopped. */
  async function expire(signal: AbortSignal): Promise<void> {
    for (let ms = options.timeoutMs; !over; ms = LINE_MS) {
      await options.clock.delay(ms, signal);
      if (signal.aborted || over) return;
      const inLine = [...undecided.daemonset].filter((key) => options.isInLine?.(key) === true);
      if (inLine.length === 0 && options.isStopped?.() !== true) return end();
      undecided.pod.clear();
      undecided.daemonset = new Set(inLine);
    }
  }

  function end(): void {
    if (over) return;
    over = true;
    options.onOver(left());
    for (const keys of [undecided.pod, undecided.daemonset]) keys.clear();
  }

  return {
    /** Sets the objects to wait for and starts the time. */
    begin({ pod, daemonset }: Readonly<Record<Kind, Iterable<string>>>, signal: AbortSignal): void {
      for (const key of pod) undecided.pod.add(key);
      for (const key of daemonset) undecided.daemonset.add(key);
      begun = true;
      if (left() === 0) end();
      else void expire(signal);
    },
    /** The object was placed, skipped or held, had a failed lookup, or is gone. */
    decided(kind: Kind, key: string): void {
      if (begun && !over && undecided[kind].delete(key) && left() === 0) end();
    },
    over: (): boolean => over,
    /** Returns the DaemonSets that were not decided yet. */
    undecidedDaemonSets: (): Iterable<string> => undecided.daemonset,
  };
}
