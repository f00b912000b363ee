import { createFairQueue } from './fair-queue.ts';

/**
 * Waiting keys of the form `namespace/name`, each at most once. Within a namespace the first in is the first out;
 * namespaces take turns.
 */
export type FairKeys = {
  /** Adds a key; does nothing if the key already waits. */
  add(key: string): void;
  has(key: string): boolean;
  delete(key: string): void;
  /** Takes the next key; undefined if none waits. */
  take(): string | undefined;
  readonly size: number;
};

/** Creates an empty list. Keys without a namespace share one turn. */
export function createFairKeys(): FairKeys {
  const queue = createFairQueue<string>();
  const leave = new Map<string, () => void>();
  return {
    add(key) {
      if (!leave.has(key)) leave.set(key, queue.add(key.slice(0, Math.max(0, key.indexOf('/'))), key));
    },
    has: (key) => leave.has(key),
    delete(key) {
      leave.get(key)?.();
      leave.delete(key);
    },
    take() {
      const key = queue.take();
      if (key !== undefined) leave.delete(key);
      return key;
    },
    get size() {
      return queue.size;
    },
  };
}
