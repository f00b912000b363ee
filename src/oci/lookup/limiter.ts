import type { Askers } from '../../kit/fairness/asking-namespaces.ts';
import { createLedger } from '../../kit/fairness/ledger.ts';
import { createTurns, type Need } from '../../kit/fairness/turns.ts';
import type { Place, Standing } from './health.ts';

/** The most requests in flight for one namespace, and in all. */
type Bounds = { readonly perNamespace: number; readonly total: number };

export type LimiterOptions = {
  /** The most in flight at one host, for all namespaces. */
  readonly perHost: number;
  /** For projects that answer, and new projects of hosts that answer. */
  readonly proven?: Bounds;
  /**
   * For all others, counted separately: a host or a project that hangs takes no slot from one that answers. `perHost`:
   * for one namespace at one host. `perProject`: for all namespaces at one project that has not answered; one that failed gets one.
   */
  readonly unproven?: Bounds & { readonly perHost: number; readonly perProject: number };
  /** What is known of a place at this moment. */
  readonly standing: (place: Place) => Standing;
};

const PROVEN: Bounds = { perNamespace: 24, total: 40 };
/** Two lookups at a new project are enough to find out whether it answers. */
const UNPROVEN = { perNamespace: 8, total: 24, perHost: 3, perProject: 2 };

/**
 * Limits what is in flight. If a limit is reached, namespaces take turns, and within a namespace its projects do; the
 * lookups of one namespace at one project are served in order.
 */
export function createLimiter({ perHost, proven = PROVEN, unproven = UNPROVEN, standing }: LimiterOptions) {
  const turns = createTurns();
  // Paths that hang would take all slots, so one slot of a host is left to its other projects, and one of a project to
  // the other namespaces.
  const most = Math.max(1, perHost - 1);
  const mostOfOne = Math.max(1, most - 1);

  function needsOf({ host: { key: host }, project: { key: project } }: Place, now: Standing, name: string): Need[] {
    const kind = isAnswering(now) ? 'proven' : 'unproven';
    const { perNamespace, total } = isAnswering(now) ? proven : unproven;
    const needs: Need[] = [
      [kind, total],
      [`${kind} namespace ${name}`, perNamespace],
      [host, perHost],
    ];
    if (now === 'proven') {
      return [
        ...needs,
        [`namespace ${name} ${host}`, most],
        [project, most],
        [`namespace ${name} ${project}`, mostOfOne],
      ];
    }
    return [
      ...needs,
      [`other ${host}`, most],
      [`${kind} other namespace ${name} ${host}`, now === 'new' ? mostOfOne : unproven.perHost],
      now === 'failing' ? [`failing ${project}`, 1] : [`other ${project}`, Math.min(most, unproven.perProject)],
    ];
  }

  return {
    /**
     * Does the work at a place in the turn of any of the namespaces, for which it then counts.
     *
     * @param signal ends the wait, not the work
     * @throws what the work throws, or the signal's reason
     */
    run<T>(place: Place, askers: Askers, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const [host, project] = [place.host.key, place.project.key];
      const needs = (namespace: string): Need[] => needsOf(place, standing(place), namespace);
      return turns.run(askers, { line: project, needs, marks: [host, project] }, signal, async () => {
        const before = standing(place);
        try {
          return await work();
        } finally {
          // If it has answered since, those who wait need other slots now.
          const now = standing(place);
          if (before === 'unknown' && isAnswering(now)) turns.again(host);
          else if (before !== 'proven' && now === 'proven') turns.again(project);
        }
      });
    },
  };
}

function isAnswering(standing: Standing): boolean {
  return standing === 'proven' || standing === 'new';
}

/**
 * The lookups of one namespace that may have started: in all, at one host, and at one project; enough to keep its turns at registries
 * busy, in about 3 MB. Hosts take turns, and at a host its projects do, so that one that hangs delays no other.
 */
const STARTS = { perNamespace: 256, perHost: 64, perProject: 16 };

type LookupSpot = { readonly namespace: string; readonly host: string; readonly project: string };

/** The most bytes that wait: of one namespace, of all, and of each namespace although the others have taken all. */
const ROOM = { perGroup: 6 * 1024 * 1024, inAll: 24 * 1024 * 1024, always: 64 * 1024 } as const;
/** Bytes of a waiting lookup, without its key, which is there several times. */
const ENTRY = 320;

/**
 * Limits the lookups of one namespace that have started. A lookup that runs or waits for its place takes about 10 kB; the others wait here
 * and take little more than a name, because the pods of one tenant may name hundreds of thousands of images.
 */
export function createStarts({ perNamespace, perHost, perProject } = STARTS) {
  const turns = createTurns();
  /** Has an entry for each lookup that waits. */
  const room = createLedger(ROOM);

  return {
    /**
     * Starts a lookup now, or when others of its namespace have ended. Does nothing if it waits already. `mayStart` is called just
     * before, and may prevent it. `start` returns undefined if the lookup is not wanted any more. False if there is no room to wait:
     * then the pods that wait for the image ask again.
     */
    add(
      { namespace, host, project }: LookupSpot,
      key: string,
      mayStart: () => boolean,
      start: () => Promise<unknown> | undefined,
    ): boolean {
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
