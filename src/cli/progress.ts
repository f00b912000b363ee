import type { Surroundings } from '../app/surroundings.ts';

/** Shows how far long work is, on standard error. */
export type Progress = ReturnType<typeof createProgress>;

/** Milliseconds between two pictures of the bar, and between two lines where there is no terminal. */
const BAR_MS = 100;
const LINE_MS = 5_000;
const CELLS = 20;

/**
 * Creates a progress: a bar on a terminal, elsewhere a line every few seconds. Work that ends before the first line is due shows
 * nothing there. It has no timer: something is shown only when a step ends.
 */
export function createProgress({ clock, note, status }: Pick<Surroundings, 'clock' | 'note' | 'status'>) {
  let last = clock.monotonic() - (status === undefined ? 0 : BAR_MS);
  let isShown = false;
  const waitedFor = new Set<string>();
  /** Whether it is time for the next picture or line. */
  const isDue = () => {
    const now = clock.monotonic();
    if (now - last < (status === undefined ? LINE_MS : BAR_MS)) return false;
    last = now;
    isShown = true;
    return true;
  };
  return {
    /** Shows that the work waits for somebody: on a terminal in place of the bar, elsewhere as a line, the first for each name at once. */
    wait(name: string, line: string): void {
      if (!isDue() && (status !== undefined || waitedFor.has(name))) return;
      waitedFor.add(name);
      (status ?? note)(line);
    },
    /** Call after each step. `total`: undefined if it is not known. */
    show(what: string, done: number, total?: number): void {
      if (!isDue()) return;
      if (status === undefined) note(total === undefined ? `${what}: ${done}` : `${what}: ${done} of ${total}`);
      else status(barText(what, done, total));
    },
    /** Removes the bar. Call it before anything else is printed. */
    end(): void {
      if (isShown) status?.('');
    },
  };
}

function barText(what: string, done: number, total: number | undefined): string {
  if (total === undefined || total === 0) return `${what} ${done}`;
  const full = Math.round((CELLS * Math.min(done, total)) / total);
  return `${what} [${'#'.repeat(full)}${'.'.repeat(CELLS - full)}] ${done}/${total}`;
}
