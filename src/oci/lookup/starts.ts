import { createLedger } from '../../kit/fairness/ledger.ts';
import { createTurns, type Need } from '../../kit/fairness/turns.ts';

/** Starts a lookup, or returns undefined if it is not wanted any more. */
type Start = () => Promise<unknown> | undefined;

/** Where a lookup waits. */
type Spot = { readonly namespace: string; readonly host: string; readonly project: string };

export type StartsOptions = {
  /**
   * The limits for one namespace: in all, at one host, and at one project. Hosts take turns, and at a host its projects
   * do, so that one that hangs delays no other.
   */
  readonly perNamespace: number;
  readonly perHost: number;
  readonly perProject: number;
};

/** For each namespace: enough to keep its turns at registries busy, in about 3 MB. */
export const STARTS: StartsOptions = { perNamespace: 256, perHost: 64, perProject: 16 };

/** The most bytes that wait: of one namespace, of all, and of each namespace although the others have taken all. */
const ROOM = { perGroup: 6 * 1024 * 1024, inAll: 24 * 1024 * 1024, always: 64 * 1024 } as const;
/** Bytes of a waiting lookup, without its key, which is there several times. */
const ENTRY = 320;

/**
 * Limits the lookups of one namespace that have started. A lookup that runs or waits for its place takes about 10 kB;
 * the others wait here and take little more than a name, because the pods of one tenant may name hundreds of thousands
 * of images.
 */
export function createStarts({ perNamespace, perHost, perProject }: StartsOptions) {
  const turns = createTurns();
  /** Has an entry for each lookup that waits. */
  const room = createLedger(ROOM);

  return {
    /**
     * Starts a lookup now, or when others of its namespace have ended. Does nothing if it waits already. `mayStart` is called just
     * before, and may prevent it. False if there is no room to wait: then the pods that wait for the image ask again.
     */
    add({ namespace, host, project }: Spot, key: string, mayStart: () => boolean, start: Start): boolean {
      const entry = `${namespace} ${key}`;
      if (room.has(entry)) return true;
      if (!room.book(entry, namespace, ENTRY + 3 * key.length)) return false;
      if (!mayStart()) {
        room.free(entry);
        return true;
      }
      const needs: readonly Need[] = [
        [namespace, perNamespace],
        [`${namespace} ${host}`, perHost],
        [`${namespace} ${host} ${project}`, perProject],
      ];
      turns.add(host, { line: `${namespace} ${project}`, needs: () => needs }, () => {
        room.free(entry);
        return start();
      });
      return true;
    },
    /** The number of lookups that wait. */
    get size() {
      return room.size;
    },
  };
}
