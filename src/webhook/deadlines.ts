/**
 * Creates deadlines of `ms` milliseconds that share one timer. A timer of its own for each request costs as much as the rest of
 * reading a small body. The timer runs only while there are deadlines, and does not keep the process alive.
 */
export function createDeadlines(ms: number) {
  /** The deadlines in the order in which they end, because all have the same time. */
  const open = new Set<{ readonly at: number; readonly onOver: () => void }>();
  let isRunning = false;

  function run(inMs: number): void {
    isRunning = true;
    setTimeout(look, inMs).unref();
  }
  function look(): void {
    isRunning = false;
    const now = performance.now();
    for (const deadline of open) {
      if (deadline.at > now) {
        run(deadline.at - now);
        return;
      }
      open.delete(deadline);
      deadline.onOver();
    }
  }
  return {
    /** Calls `onOver` after the time. Returns a function that cancels the call. */
    add(onOver: () => void): () => void {
      const deadline = { at: performance.now() + ms, onOver };
      open.add(deadline);
      if (!isRunning) run(ms);
      return () => void open.delete(deadline);
    },
  };
}
