import { createHash, timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '../kit/json.ts';
import { calledPaths } from './configuration.ts';

/** The paths at which a replica answers. */
export type Paths = {
  /** The one that callers are to use: of the configuration key, else of the Secret; undefined where neither is there. */
  wanted(): string | undefined;
  /** Notes by which paths the API server calls; undefined: there is no configuration. */
  saw(configuration: JsonObject | undefined): void;
  /** Whether a request to this path is answered. Takes the same time for every wrong path of a length. */
  isServed(path: string): boolean;
};

/** How long a path is answered that callers used before: API servers learn of a change one after the other. */
const FORMER_MS = 30_000;
/** What a configuration calls that names no path, as a manifest that has just been applied does. */
const UNNAMED = '/';

/** `now`: monotonic, in milliseconds. */
export function createPaths(wanted: () => string | undefined, now: () => number): Paths {
  /** Until when each path is answered that callers use, or used. */
  const called = new Map<string, number>();
  let current: readonly string[] | undefined;

  function served(): string[] {
    const own = wanted();
    const live = [...called].flatMap(([path, until]) => (now() <= until ? path : []));
    const isSettled = own !== undefined && (current === undefined || current.every((path) => path === own));
    return [...(own === undefined ? [] : [own]), ...(isSettled ? [] : [UNNAMED]), ...live];
  }
  return {
    wanted,
    saw(configuration) {
      for (const [path, until] of called) if (until < now()) called.delete(path);
      for (const path of current ?? []) called.set(path, now() + FORMER_MS);
      current = calledPaths(configuration);
      for (const path of current) called.set(path, Number.POSITIVE_INFINITY);
    },
    isServed: (path) => served().reduce((found, each) => isSame(path, each) || found, false),
  };
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}

/** Whether the replicas in the cluster are of one template, as they are between two rollouts. */
export type Replicas = 'alike' | 'mixed' | 'unknown';

/** What decides whether the live configuration may name another path. Times in milliseconds. */
export type Switching = {
  /** Whether any caller trusts an authority: without one nobody calls. */
  readonly isCalled: boolean;
  /** Whether this process saw the wanted path in the live configuration before: then somebody else has changed it. */
  readonly wasSettled: boolean;
  /** For how long the wanted path has been known to this process. */
  readonly knownForMs: number;
  readonly leadingForMs: number;
  readonly replicas: Replicas;
};

/** Three looks of a replica at the Secret: by then all know the path in it. */
const KNOWN_MS = 30_000;
/** How long a leader waits that cannot see whether a rollout is under way. */
const UNSEEN_MS = 60_000;

/**
 * Whether the leader may write the wanted path into the live configuration: no replica that would answer it with 404 may be left,
 * as the review would be lost. One of an earlier version serves its own path alone, until its rollout is over.
 */
export function maySwitch({ isCalled, wasSettled, knownForMs, leadingForMs, replicas }: Switching): boolean {
  if (!isCalled || wasSettled) return true;
  if (knownForMs < KNOWN_MS || replicas === 'mixed') return false;
  return replicas === 'alike' || leadingForMs >= UNSEEN_MS;
}
