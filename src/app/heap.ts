import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Fewer than the fifth of a small heap (30 MB) by which V8 lets it grow. */
const MOST_RECEIVED = 4 * 1024 * 1024;

/** Returns the heap of this process. Until `keepSmall` is called, it is as V8 keeps it. */
export function createHeap() {
  let collect: unknown;
  let received = 0;
  return {
    /**
     * Keeps the heap near what is alive, and collects now. V8 lets a young process grow to several times that before it collects: after
     * a burst of 2,000 pods it held 165 MB for 35 MB of live objects (docs/decisions/006-small-heap.md). The flags are read at every
     * collection. Call it at the start, because the space of young objects never gets smaller again, and whenever much has become garbage.
     */
    keepSmall(): void {
      setFlagsFromString('--semi-space-growth-factor=1');
      setFlagsFromString('--heap-growing-percent=20');
      // Young garbage is little at a time. Threads that help with it cost more than they save, most of all under a CPU limit.
      setFlagsFromString('--no-parallel-scavenge');
      setFlagsFromString('--expose-gc');
      collect ??= runInNewContext('globalThis.gc');
      if (typeof collect !== 'function') return;
      // V8 then also moves objects together from pages that are a fifth empty. By default, a page must be nearly empty for that.
      setFlagsFromString('--optimize-for-size');
      collect();
      setFlagsFromString('--no-optimize-for-size');
    },
    /**
     * Counts bytes that arrived over a watch, and collects young garbage once in a while. V8 counts the buffers of received bytes
     * with the old objects until they are collected, although they are garbage at once. When little else is allocated, young garbage
     * is collected so seldom that these buffers cause one full collection after the other, each of which reads the whole heap.
     */
    received(bytes: number): void {
      received += bytes;
      if (received < MOST_RECEIVED) return;
      received = 0;
      if (typeof collect === 'function') collect({ type: 'minor' });
    },
  };
}
