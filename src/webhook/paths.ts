import { timingSafeEqual } from 'node:crypto';
import type { JsonObject } from '../kit/json.ts';
import { APP_LABEL, DEPLOYMENT } from '../names.ts';
import type { Pod } from '../placement/objects/pod.ts';
import { calledPaths } from './configuration.ts';

/** The paths at which a replica answers. */
export type Paths = ReturnType<typeof createPaths>;

/** How long a former path is still answered: API servers notice a change one after the other. */
const FORMER_MS = 30_000;
/** The path that is called if a configuration names none, as right after the manifest was applied. */
const UNNAMED = '/';

/** Creates the paths of a replica. `now`: monotonic, in milliseconds. */
export function createPaths(wanted: () => string | undefined, now: () => number) {
  /** The present and former paths of callers, and until when each is answered. */
  const called = new Map<string, number>();
  let current: readonly string[] | undefined;

  /** Compares a path with all that are served, so that the time does not say which one it is. Called for each review. */
  function isServed(path: string): boolean {
    const [own, at] = [wanted(), now()];
    const isOnlyPath = own !== undefined && (current === undefined || current.every((each) => each === own));
    let isFound = own !== undefined && isSame(path, own);
    if (!isOnlyPath) isFound = isSame(path, UNNAMED) || isFound;
    for (const [each, until] of called) if (each !== own && at <= until) isFound = isSame(path, each) || isFound;
    return isFound;
  }
  return {
    /** Returns the path that callers should use: from the configuration key, else from the Secret; undefined if there is neither. */
    wanted,
    /** Records the paths that the API server calls; undefined: there is no configuration. */
    saw(configuration: JsonObject | undefined): void {
      for (const [path, until] of called) if (until < now()) called.delete(path);
      for (const path of current ?? []) called.set(path, now() + FORMER_MS);
      current = calledPaths(configuration);
      for (const path of current) called.set(path, Number.POSITIVE_INFINITY);
    },
    /** Whether a request to this path is answered. Takes the same time for every wrong path of the same length. */
    isServed,
  };
}

/** A path has at most as many characters as bytes, so that the length alone, which is no secret, tells most wrong ones apart. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

/** Whether all replicas in the cluster have the same pod template (`alike`), or a rollout is under way (`mixed`). */
export type Replicas = 'alike' | 'mixed' | 'unknown';

/** The label of a Deployment's pods that is the same for all pods of one template. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Compares the templates of all replicas in a namespace with that of the pod `own`. A terminating pod counts until it is gone,
 * because it answers until then. `unknown` if `own` is not among the pods: the process runs outside the cluster, or on the node's
 * network, where the host name is not the pod's.
 */
export function replicasAlike(
  pods: Iterable<Pick<Pod, 'namespace' | 'name' | 'labels' | 'phase'>>,
  namespace: string,
  own: string,
): Replicas {
  const replicas = [...pods].filter(
    (pod) =>
      pod.namespace === namespace &&
      pod.labels[APP_LABEL] === DEPLOYMENT &&
      pod.phase !== 'Succeeded' &&
      pod.phase !== 'Failed',
  );
  const hash = replicas.find(({ name }) => name === own)?.labels[TEMPLATE_HASH];
  if (hash === undefined) return 'unknown';
  return replicas.every(({ labels }) => labels[TEMPLATE_HASH] === hash) ? 'alike' : 'mixed';
}

/** The facts that decide whether the leader may write another path into the live configuration. Times in milliseconds. */
export type Switching = {
  /** Whether any webhook has a bundle. Without one the API server cannot call. */
  readonly isCalled: boolean;
  /** Whether this process saw the wanted path in the live configuration before. If so, somebody else has changed it. */
  readonly wasSeen: boolean;
  /** For how long the wanted path has been known to this process. */
  readonly knownForMs: number;
  readonly leadingForMs: number;
  readonly replicas: Replicas;
};

/** The time of three checks of the Secret: after it, every replica knows the path. */
const KNOWN_MS = 30_000;
/** How long a leader waits if it cannot see whether a rollout is under way. */
const UNSEEN_MS = 60_000;

/**
 * Whether the leader may write the wanted path into the live configuration. Every replica must answer that path: a 404 would lose
 * the review. A replica of an earlier version serves only its own path, and exists until the rollout is over.
 */
export function maySwitch({ isCalled, wasSeen, knownForMs, leadingForMs, replicas }: Switching): boolean {
  if (!isCalled || wasSeen) return true;
  if (knownForMs < KNOWN_MS || replicas === 'mixed') return false;
  return replicas === 'alike' || leadingForMs >= UNSEEN_MS;
}
