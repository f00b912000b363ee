/** How often the controller writes each object, and whether it ever stops. */
import { at, text } from '../../test/simulator/json.ts';

/** A request as the simulator logs it. */
export type Sent = {
  readonly method: string;
  readonly path: string;
  readonly user: string;
  readonly status: number;
  readonly body?: unknown;
};

/** What was sent about one object. */
export type Written = {
  /** Writes that the API server took. Dry runs are not among them. */
  readonly taken: number;
  /** Writes that it refused, lost conflicts included. */
  readonly refused: number;
};

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
/** It is renewed for as long as the controller runs. */
const LEASES = '/apis/coordination.k8s.io/';

/** Counts the writes of one user by object. An object's path, or what an Event is about, is its name here. */
export function createTally(user: string) {
  const counts = new Map<string, Written>();
  return {
    counts: counts as ReadonlyMap<string, Written>,
    add(requests: readonly Sent[]): void {
      for (const sent of requests) {
        if (sent.user !== user || !WRITES.has(sent.method) || sent.path.startsWith(LEASES)) continue;
        const name = nameOf(sent);
        const { taken, refused } = counts.get(name) ?? { taken: 0, refused: 0 };
        const isTaken = sent.status < 300 && !sent.path.includes('dryRun=All');
        counts.set(name, { taken: taken + Number(isTaken), refused: refused + Number(!isTaken) });
      }
    },
  };
}

function nameOf({ method, path, body }: Sent): string {
  const [name = ''] = path.split('?');
  if (method !== 'POST' || !name.endsWith('/events')) return name;
  const [kind, namespace, about] = ['kind', 'namespace', 'name'].map((field) => text(at(body, 'regarding', field)));
  return `Events about ${kind} ${namespace === '' ? '' : `${namespace}/`}${about}`;
}

/** Minutes for which an object is left alone when a write to it was undone three times; twice as long each time after that. */
const PAUSE_MINUTES = 10;
const UNDONE = 3;
/** The first write, a record that is added, a change that is taken back, a part that is left out. */
const OTHER_WRITES = 5;
/** A refused write is tried again after 0.1 seconds, then after twice as long, and from about the tenth time on after 30 to 60 seconds. */
const FIRST_TRIES = 12;
const LATER_TRIES_PER_MINUTE = 2;

/**
 * The most writes that an object may get in so many minutes if somebody undoes each of them. `changes`: how often its author
 * changed it meanwhile, because each of these is a new state to decide about.
 */
export function mostWrites(minutes: number, changes: number): Written {
  const pauses = Math.floor(Math.log2(minutes / PAUSE_MINUTES + 1));
  return {
    taken: UNDONE + pauses + OTHER_WRITES + changes,
    refused: FIRST_TRIES + Math.ceil(LATER_TRIES_PER_MINUTE * minutes) + changes,
  };
}

/** The writes to an object, beside the most that it may get. */
export type Judged = {
  readonly name: string;
  readonly written: Written;
  readonly most: Written;
  readonly isEndless: boolean;
};

/** Judges the writes to each object; those with the most writes come first. `changes`: by the names of objects whose author changes them. */
export function judgeWrites(
  counts: ReadonlyMap<string, Written>,
  minutes: number,
  changes: ReadonlyMap<string, number>,
): Judged[] {
  const judged = [...counts].map(([name, written]) => {
    const most = mostWrites(minutes, changes.get(name) ?? 0);
    return { name, written, most, isEndless: written.taken > most.taken || written.refused > most.refused };
  });
  const all = ({ written }: Judged) => written.taken + written.refused;
  return judged.sort((one, other) => Number(other.isEndless) - Number(one.isEndless) || all(other) - all(one));
}
