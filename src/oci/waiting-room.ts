import { createLedger } from '../kit/fairness/ledger.ts';

/**
 * The room for lookups that wait for their start, in bytes. The pods of one tenant may name any number of images, with long names;
 * a lookup that has no room is asked for again by the pods that wait for it.
 */
type WaitingRoom = {
  /** Whether there is room for one more lookup of a namespace; if so, it is taken until `leave`. */
  enter(namespace: string, key: string): boolean;
  leave(namespace: string, key: string): void;
};

/** The most bytes: of one namespace, of all, and of each namespace although the others have taken all. */
const LIMITS = { perGroup: 6 * 1024 * 1024, inAll: 24 * 1024 * 1024, always: 64 * 1024 } as const;
/** Bytes of a waiting lookup, without its key, which is there several times. */
const ENTRY = 256;

/** Creates an empty room. */
export function createWaitingRoom(): WaitingRoom {
  const ledger = createLedger(LIMITS);
  const entryOf = (namespace: string, key: string) => `${namespace} ${key}`;
  return {
    enter: (namespace, key) => ledger.book(entryOf(namespace, key), namespace, ENTRY + 3 * key.length),
    leave: (namespace, key) => ledger.free(entryOf(namespace, key)),
  };
}
