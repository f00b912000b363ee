import { createLedger } from '../../kit/fairness/ledger.ts';
import { createGates, type Lane, type Way } from './gates.ts';

/** Starts a lookup, or returns undefined if it is not wanted any more. */
type Start = () => Promise<unknown> | undefined;

/** Where a lookup waits. */
type Spot = { readonly namespace: string; readonly host: string; readonly project: string };

/** The lookups of one namespace at one project of one host (the group) that wait, by their keys; never empty. */
type Queue = Lane & { readonly name: string; readonly namespace: string; readonly waiting: Map<string, Start> };

/**
 * Limits the lookups of one namespace that have started. A lookup that runs or waits for its place takes about 10 kB;
 * the others wait here and take little more than a name, because the pods of one tenant may name hundreds of thousands
 * of images.
 */
export type Starts = {
  /**
   * Starts a lookup now, or when others of its namespace have ended. Does nothing if it waits already. `mayStart` is called just
   * before, and may prevent it. False if there is no room to wait: then the pods that wait for the image ask again.
   */
  add(spot: Spot, key: string, mayStart: () => boolean, start: Start): boolean;
  /** The number of lookups that wait. */
  readonly size: number;
};

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
const ENTRY = 256;

/** Creates the limit; nothing runs yet. */
export function createStarts({ perNamespace, perHost, perProject }: StartsOptions): Starts {
  const queues = new Map<string, Queue>();
  const gates = createGates<Queue>(advance);
  const room = createLedger(ROOM);
  let size = 0;

  function advance(queue: Queue): boolean {
    const { name, namespace, group: host, waiting } = queue;
    const way: Way = [
      [namespace, perNamespace],
      [`${namespace} ${host}`, perHost],
      [name, perProject],
    ];
    for (const [key, start] of waiting) {
      if (!gates.pass(queue, way)) return false;
      waiting.delete(key);
      size -= 1;
      room.free(`${namespace} ${key}`);
      if (waiting.size === 0) queues.delete(name);
      const running = start();
      if (running === undefined) gates.give(way);
      else {
        const end = (): void => {
          gates.give(way);
          gates.wake(way);
        };
        running.then(end, end);
        return waiting.size > 0;
      }
    }
    return false;
  }

  return {
    add({ namespace, host, project }, key, mayStart, start) {
      const name = `${namespace} ${host} ${project}`;
      const others = queues.get(name);
      if (others?.waiting.has(key)) return true;
      const entry = `${namespace} ${key}`;
      if (!room.book(entry, namespace, ENTRY + 3 * key.length)) return false;
      if (!mayStart()) {
        room.free(entry);
        return true;
      }
      size += 1;
      if (others !== undefined) others.waiting.set(key, start);
      else {
        const queue: Queue = { group: host, name, namespace, waiting: new Map([[key, start]]) };
        queues.set(name, queue);
        advance(queue);
      }
      return true;
    },
    get size() {
      return size;
    },
  };
}
