import { createLru } from '../../kit/lru.ts';
import { ImageError } from '../errors.ts';
import type { Place } from './place.ts';

/**
 * Spares what does not answer: after {@link FAILURES} failures in a row, a repository, a project or a host gets no
 * requests for a while, and then one at a time to see whether it is back.
 *
 * A part is not the whole:
 * - An HTTP answer (5xx) and a failed login count for the repository, and for its project once two of its repositories
 *   failed. The host has answered.
 * - Silence counts for these, too, and for the host once two of its projects were silent.
 * - If no connection can be made, that counts for the host.
 * - A project or host that fails because its parts did holds back only parts that failed themselves, for at most
 *   {@link LONGEST}. All others may ask; the limiter bounds how many do at a time.
 *
 * Authors of pods choose paths as well. So failures that only one or two namespaces met block only those namespaces;
 * failures that {@link WITNESSES} namespaces met count for all.
 */
export type Circuits = {
  /**
   * Returns why the place must not be asked now for these namespaces, in an error with `isUnasked`; its `retryAfterMs`
   * says when it may be asked. If one of the namespaces may ask, the lookup may ask for all of them.
   */
  open(place: Place, namespaces: readonly string[]): ImageError | undefined;
  /**
   * The same, just before the place is asked. If it returns undefined, ask now and report the result with {@link
   * Circuits.record}.
   */
  refusal(place: Place, namespaces: readonly string[]): ImageError | undefined;
  /**
   * Records a result. An answer closes the circuits of the repository, the project and the host for everybody. An error
   * that says nothing about the place changes nothing.
   *
   * @param extent what the error says something about, by {@link extentOf}
   */
  record(place: Place, namespaces: readonly string[], error: ImageError | undefined, extent?: Extent): void;
  /** What is known of a place: how many lookups may be there at a time depends on it. */
  standing(place: Place): Standing;
};

/**
 * - `proven`: the project answered when it was last asked.
 * - `new`: nothing is known of the project, and its host answered when it was last asked.
 * - `unknown`: nothing is known of the project, and its host has not answered, or failed when it was last asked.
 * - `failing`: the project failed when it was last asked, or no connection to its host can be made.
 */
export type Standing = 'proven' | 'new' | 'unknown' | 'failing';

/** What an error says something about. `none`: about nothing. `answer`: it is an answer. */
export type Extent = 'none' | 'answer' | 'path' | 'silence' | 'host';

/**
 * Returns what the failure of a lookup at a host[:port] says something about.
 */
export function extentOf({ code, unreachable, status, byCredential }: ImageError, host: string): Extent {
  if (code === 'forbidden-address') return 'none';
  if (code !== 'unavailable' && code !== 'timeout') return 'answer';
  // The host of a token service, or one to which the registry redirects, is another one.
  if (unreachable === host) return 'host';
  // A token service fails for a login, and the registry has answered with a challenge.
  return status !== undefined || byCredential ? 'path' : 'silence';
}

export type CircuitOptions = {
  readonly now: () => number;
  /** From 0 to 1, excluding 1. */
  readonly random: () => number;
};

const FAILURES = 5;
/** The number of namespaces that must meet failures, in a row, before the failures count for all others too. */
const WITNESSES = 3;
/** The number of parts that must fail, in a row, before their failures count for the whole. */
const PARTS = 2;
/** Milliseconds; doubles with each further failure. */
const FIRST = 2000;
/** Milliseconds; the longest time for which anything gets no requests. */
const LONGEST = 30_000;
/** Authors of pods choose the names. What is forgotten is asked, a few lookups at a time. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The bytes of an entry without its names. */
const ENTRY_BYTES = 600;

type Circuit = { failures: number; openUntil: number; isProbed: boolean };
type Level = keyof Place;
/** The failures of a repository, a project or a host in a row. */
type Outage = Circuit & {
  readonly level: Level;
  /** The failures that each of the first {@link WITNESSES} namespaces met. */
  readonly of: Map<string, Circuit>;
  /** The first {@link PARTS} parts that failed. */
  readonly parts: Set<string>;
  /** Whether the last failure is certain to be one of the whole. */
  isWhole: boolean;
  failedAt: number;
  last?: Pick<ImageError, 'message' | 'code' | 'status' | 'byCredential' | 'endpoint'>;
};

const LEVELS: readonly Level[] = ['repository', 'project', 'host'];
/** The next narrower level. */
const PART: Readonly<Record<Level, Level | undefined>> = {
  repository: undefined,
  project: 'repository',
  host: 'project',
};
/** The levels that a failure counts for. */
const CONCERNED: Readonly<Record<'path' | 'silence' | 'host', readonly Level[]>> = {
  path: ['repository', 'project'],
  silence: LEVELS,
  host: ['host'],
};

const closed = (): Circuit => ({ failures: 0, openUntil: 0, isProbed: false });

export function createCircuits({ now, random }: CircuitOptions): Circuits {
  const outages = createLru<Outage>(MAX_BYTES, bytesOf);

  /** Returns the circuits of a level that must all be open to block a place; none if the level does not block it. */
  function circuitsOf(place: Place, level: Level, namespaces: readonly string[]): readonly Circuit[] {
    const outage = outages.get(place[level].key);
    if (outage === undefined || !concerns(outage, place)) return [];
    return outage.of.size >= WITNESSES ? [outage] : namespaces.map((name) => outage.of.get(name) ?? closed());
  }

  /** Whether the failures of a level count for this part of it. */
  function concerns(outage: Outage, place: Place): boolean {
    const part = PART[outage.level];
    if (part === undefined || outage.isWhole) return true;
    const own = outages.get(place[part].key);
    const hasFailed = own !== undefined && own.failures > 0 && now() - own.failedAt < LONGEST;
    return outage.parts.size >= PARTS && hasFailed;
  }

  /** Returns the milliseconds until a level of a place may be asked; 0 if it may be asked now. */
  function waitAt(place: Place, level: Level, namespaces: readonly string[]): number {
    const waits = circuitsOf(place, level, namespaces).map(({ failures, openUntil }) =>
      failures < FAILURES ? 0 : Math.max(0, openUntil - now()),
    );
    // That of the namespace whose pause ends first.
    return waits.length === 0 ? 0 : Math.min(...waits);
  }

  function open(place: Place, namespaces: readonly string[]): ImageError | undefined {
    const open = LEVELS.map((level) => ({ level, wait: waitAt(place, level, namespaces) })).filter(
      ({ wait }) => wait > 0,
    );
    const widest = open.at(-1)?.level;
    const last = widest === undefined ? undefined : outages.get(place[widest].key)?.last;
    if (widest === undefined || last === undefined) return undefined;
    return unasked(last, widest, place, Math.max(...open.map(({ wait }) => wait)));
  }

  function answered(place: Place): void {
    outages.delete(place.repository.key);
    for (const level of ['project', 'host'] as const) outages.set(place[level].key, nothing(level));
  }

  function fail(circuit: Circuit): void {
    circuit.failures += 1;
    // Failures of parts that may ask meanwhile must not prolong the pause for which others wait.
    if (circuit.failures > FAILURES && !circuit.isProbed) return;
    circuit.isProbed = false;
    circuit.openUntil = now() + delay(circuit.failures);
  }

  function failAt(place: Place, level: Level, isWhole: boolean, error: ImageError, namespaces: readonly string[]) {
    const outage = outages.get(place[level].key) ?? nothing(level);
    const part = PART[level];
    if (part !== undefined && !isWhole && outage.parts.size < PARTS) outage.parts.add(place[part].key);
    for (const name of namespaces) {
      const circuit = outage.of.get(name) ?? closed();
      if (outage.of.has(name) || outage.of.size < WITNESSES) outage.of.set(name, circuit);
      fail(circuit);
    }
    fail(outage);
    const { message, code, status, byCredential, endpoint } = error;
    Object.assign(outage, { isWhole, failedAt: now(), last: { message, code, status, byCredential, endpoint } });
    outages.set(place[level].key, outage);
  }

  function delay(failures: number): number {
    if (failures < FAILURES) return 0;
    return Math.min(FIRST * 2 ** Math.min(failures - FAILURES, 20), LONGEST) * (0.8 + 0.4 * random());
  }

  return {
    open,
    refusal(place, namespaces) {
      const refused = open(place, namespaces);
      if (refused !== undefined) return refused;
      // The first caller after the pause tries; the others wait for its result.
      for (const level of LEVELS) {
        for (const circuit of circuitsOf(place, level, namespaces)) {
          if (circuit.failures < FAILURES) continue;
          circuit.openUntil = now() + delay(circuit.failures);
          circuit.isProbed = true;
        }
      }
      return undefined;
    },
    record(place, namespaces, error, extent = 'answer') {
      if (error === undefined || extent === 'answer') {
        answered(place);
        return;
      }
      if (extent === 'none') return;
      for (const level of CONCERNED[extent]) failAt(place, level, extent === 'host', error, namespaces);
      if (extent === 'path') outages.set(place.host.key, nothing('host'));
    },
    standing(place) {
      const [project, host] = [outages.get(place.project.key), outages.get(place.host.key)];
      if (host?.isWhole === true) return 'failing';
      if (project !== undefined) return project.failures === 0 ? 'proven' : 'failing';
      return host?.failures === 0 ? 'new' : 'unknown';
    },
  };
}

function nothing(level: Level): Outage {
  return { ...closed(), level, of: new Map(), parts: new Set(), isWhole: false, failedAt: 0 };
}

function bytesOf({ parts, last }: Outage, key: string): number {
  const names = [...parts].reduce((sum, part) => sum + part.length, key.length);
  return ENTRY_BYTES + 2 * (names + (last?.message.length ?? 0));
}

/** Says that a place was not asked, and what was answered there before. */
function unasked(
  { message, code, status, byCredential, endpoint }: NonNullable<Outage['last']>,
  level: Level,
  place: Place,
  retryAfterMs: number,
): ImageError {
  const answered = `${place.host.name} answers ${status}${byCredential ? ' to logins' : ''}`;
  const where = level === 'host' ? '' : ` for its ${level} ${place[level].name}`;
  return new ImageError(`${status === undefined ? message : answered}${where}`, {
    code,
    temporary: true,
    retryAfterMs,
    isUnasked: true,
    byCredential,
    endpoint,
  });
}
