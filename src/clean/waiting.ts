import { printable } from '../kit/printable.ts';

/** An owner that `clean` waits for, and what is missing. */
export type Waiting = {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly what: string;
};

/** How many owners a line names. */
const MOST_NAMED = 3;
/** A long name of an object, and the reason why a pod of it stays. */
const MOST_BYTES = 400;

/** Returns the line that says whom `clean` waits for, and when it gives up. `leftMs`: the time until then without progress. */
export function waitingLine(waiting: readonly Waiting[], leftMs: number): string {
  return `waiting for ${namesText(waiting)}, ${timeText(leftMs)} left`;
}

/** Returns the line that says whom `clean` waits for no longer. */
export function gaveUpLine(waiting: readonly Waiting[], timeoutMs: number): string {
  return `gave up after ${timeText(timeoutMs)} without progress: ${namesText(waiting)}`;
}

function namesText(waiting: readonly Waiting[]): string {
  const named = waiting
    .slice(0, MOST_NAMED)
    .map(({ kind, namespace, name, what }) => printable(`${kind} ${namespace}/${name}: ${what}`, MOST_BYTES));
  const others = waiting.length - named.length;
  const more = others > 0 ? [`and ${others} more`] : [];
  return [...named, ...more].join('; ');
}

function timeText(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : `${Math.floor(ms / 60_000)} min`;
}
