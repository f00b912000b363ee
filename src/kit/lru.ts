import { LRUCache } from 'lru-cache';

/**
 * Creates a map that keeps the entries that were used last, at most `most` of them, or entries of at most `most` bytes
 * in all if `bytesOf` says what an entry takes (a whole number from 1, read when the entry is set). It takes memory for the entries that it has: with
 * the option `max`, lru-cache makes room for all of them at once, which was 8 MiB in every replica.
 */
export function createLru<V extends object | string | number | boolean>(
  most: number,
  bytesOf: (value: V, key: string) => number = () => 1,
): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: most, sizeCalculation: bytesOf });
}
