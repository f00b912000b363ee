import { hash } from 'node:crypto';
import { createLedger } from '../../kit/fairness/ledger.ts';

/** Decides how much of an object a store keeps. */
export type Keeper<T> = {
  /** Returns the object, or less of it. `before`: what the store has under the key. */
  keep(key: string, object: T, before: T | undefined): T;
  /** Call it when the object is gone. */
  forget(key: string): void;
};

type KeeperOptions<T> = {
  /** Returns about how many bytes an object takes. May stop at `most`. */
  readonly weigh: (object: T, most: number) => number;
  /** Returns what is kept of an object that is too large. `digest`: {@link digestOf}. */
  readonly stub: (object: T, digest: (text: string) => string) => T;
  readonly groupOf: (object: T) => string;
  /** Whether an object takes no memory of its own beside the one before it, which was kept whole. */
  readonly sharesAll: (object: T, before: T) => boolean;
};

/** The most bytes of one object. */
const LARGEST = 16 * 1024;
/** An object that takes no more is always kept: what is above this counts. Nearly every pod takes less. */
const SMALL = 4 * 1024;
/** The most bytes that count: of one namespace, of all, and of each namespace even if the others have taken all. */
const LIMITS = { perGroup: 2 * 1024 * 1024, inAll: 12 * 1024 * 1024, always: 64 * 1024 } as const;

/** Returns a text of 44 characters that stands for a long one. */
export function digestOf(text: string): string {
  return hash('sha256', text, 'base64');
}

/** Creates a keeper that keeps an object whole unless it, or the objects of its group, or all objects take too many bytes. */
export function createKeeper<T>({ weigh, stub, groupOf, sharesAll }: KeeperOptions<T>): Keeper<T> {
  const ledger = createLedger(LIMITS);
  return {
    keep(key, object, before) {
      if (before !== undefined && sharesAll(object, before)) return object;
      const weight = weigh(object, LARGEST);
      if (weight <= SMALL) {
        ledger.free(key);
        return object;
      }
      if (weight <= LARGEST && ledger.book(key, groupOf(object), weight - SMALL)) return object;
      ledger.free(key);
      return stub(object, digestOf);
    },
    forget: ledger.free,
  };
}
