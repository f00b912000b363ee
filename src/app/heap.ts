import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Keeps the heap near what is alive. V8 lets a young process grow to several times that before it collects: after a burst
 * of 2,000 pods it held 165 MB for 35 MB of live objects (docs/decisions/006-small-heap.md). The flags are
 * read at every collection, and the first full one makes them count.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
  // Young garbage is little at a time. Threads that help with it cost more than they save, most of all under a CPU limit.
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  if (typeof collect === 'function') collect();
}
