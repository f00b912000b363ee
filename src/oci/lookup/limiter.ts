import { onAbort } from '../../kit/abort.ts';
import { createFairQueue, type FairQueue } from '../../kit/fairness/fair-queue.ts';
import type { Askers } from './askers.ts';
import type { Standing } from './circuit.ts';

/** The most requests in flight for one namespace, and in all. */
type Bounds = { readonly perNamespace: number; readonly total: number };

export type LimiterOptions = {
  /** The most in flight at one host, for all namespaces. */
  readonly perHost: number;
  /** For projects that answer, and new projects of hosts that answer. */
  readonly proven: Bounds;
  /**
   * For all others, counted separately: a host or a project that hangs takes no slot from one that answers. `perHost`:
   * for one namespace at one host. `perProject`: for all namespaces at one project that has not answered; one that failed gets one.
   */
  readonly unproven: Bounds & { readonly perHost: number; readonly perProject: number };
};

/**
 * The limits in addition to the configured one for a host: 64 lookups in all, 32 for one namespace. Two lookups at a
 * new project are enough to find out whether it answers.
 */
export const BOUNDS: Omit<LimiterOptions, 'perHost'> = {
  proven: { perNamespace: 24, total: 40 },
  unproven: { perNamespace: 8, total: 24, perHost: 3, perProject: 2 },
};

/** A wish to ask a project of a host. */
export type Claim = {
  readonly host: string;
  /** A key that no other project has, at any host. */
  readonly project: string;
  /** Any of these namespaces may have its turn for the lookup; its slot counts for that namespace. */
  readonly askers: Askers;
  /** What is known of the project at this moment. */
  readonly standing: () => Standing;
};

/**
 * Limits what is in flight. If a limit is reached, namespaces take turns, and within a namespace its projects do; the
 * lookups of one namespace at one project are served in order.
 */
export type Limiter = {
  /**
   * Waits for a slot. Resolves with a function that gives it back, to be called once.
   *
   * @throws the signal's reason if it ends the wait
   */
  acquire(claim: Claim, signal: AbortSignal): Promise<() => void>;
};

/** A number of slots, and the lanes that wait for one of them. */
type Gate = { used: number; readonly limit: number; readonly parked: FairQueue<Lane> };

type Waiter = { readonly claim: Claim; readonly lanes: Set<Lane>; readonly start: (release: () => void) => void };

/**
 * The lookups of one namespace at one project, in order; never empty. A lane is parked at one gate that is full. So a
 * returned slot wakes only the lanes that wait for such a slot, and costs the same however many wait.
 */
type Lane = {
  readonly host: string;
  readonly project: string;
  readonly namespace: string;
  readonly waiters: Set<Waiter>;
  unpark: () => void;
};

/** The lanes of one project, by namespace. `isHeldBack`: one of them was parked while the project was not proven. */
type Project = { readonly lanes: Map<string, Lane>; isHeldBack: boolean };

/** `isHeldBack`: one of its lanes was parked while the host was not known to answer. */
type Host = { readonly projects: Map<string, Project>; isHeldBack: boolean };

export function createLimiter({ perHost, proven, unproven }: LimiterOptions): Limiter {
  /** By kind and name; a gate without used slots and without waiting lanes is removed. */
  const gates = new Map<string, Gate>();
  const hosts = new Map<string, Host>();

  /**
   * Returns the gates that a lane must pass, the widest first: a lane that waits at a wide gate must not starve behind
   * a narrow one.
   */
  function wayOf({ host, project, namespace }: Lane, standing: Standing): [key: string, limit: number][] {
    const [kind, { perNamespace, total }] =
      standing === 'proven' || standing === 'new' ? ['proven', proven] : ['unproven', unproven];
    // Paths that hang would take all slots, so one slot of a host is left to its other projects, and one of a project to
    // the other namespaces.
    const most = Math.max(1, perHost - 1);
    const mostOfOne = Math.max(1, most - 1);
    const way: [key: string, limit: number][] = [
      [kind, total],
      [`${kind} namespace ${namespace}`, perNamespace],
      [`host ${host}`, perHost],
    ];
    if (standing === 'proven') {
      return [
        ...way,
        [`namespace ${namespace} host ${host}`, most],
        [`project ${project}`, most],
        [`namespace ${namespace} project ${project}`, mostOfOne],
      ];
    }
    return [
      ...way,
      [`other host ${host}`, most],
      [`${kind} other namespace ${namespace} host ${host}`, kind === 'proven' ? mostOfOne : unproven.perHost],
      standing === 'failing'
        ? [`failing project ${project}`, 1]
        : [`other project ${project}`, Math.min(most, unproven.perProject)],
    ];
  }

  function gateOf(key: string, limit: number): Gate {
    const gate = gates.get(key) ?? { used: 0, limit, parked: createFairQueue<Lane>() };
    gates.set(key, gate);
    return gate;
  }

  function park(lane: Lane, key: string, limit: number): void {
    lane.unpark = gateOf(key, limit).parked.add(lane.namespace, lane);
  }

  /** Starts the first lookup of a lane, or parks the lane where it has to wait. Returns whether it started one. */
  function advance(lane: Lane): boolean {
    const [waiter] = lane.waiters;
    if (waiter === undefined) return false;
    const standing = waiter.claim.standing();
    const way = wayOf(lane, standing);
    const stop = way.find(([key, limit]) => (gates.get(key)?.used ?? 0) >= limit);
    if (stop !== undefined) {
      const host = hosts.get(lane.host);
      const project = host?.projects.get(lane.project);
      if (project !== undefined && standing !== 'proven') project.isHeldBack = true;
      if (host !== undefined && standing === 'unknown') host.isHeldBack = true;
      park(lane, ...stop);
      return false;
    }
    for (const [key, limit] of way) gateOf(key, limit).used += 1;
    for (const each of waiter.lanes) leave(waiter, each);
    waiter.start(releaseOf(waiter.claim, way));
    return true;
  }

  function releaseOf({ host, project, standing }: Claim, way: readonly [key: string, limit: number][]): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      for (const [key, limit] of way) gateOf(key, limit).used -= 1;
      // The project or the host has answered since, so waiting lanes need other slots now.
      const now = standing();
      const ofHost = hosts.get(host);
      const ofProject = ofHost?.projects.get(project);
      if (ofHost?.isHeldBack && (now === 'proven' || now === 'new')) {
        ofHost.isHeldBack = false;
        again([...ofHost.projects.values()].flatMap(({ lanes }) => [...lanes.values()]));
      } else if (ofProject?.isHeldBack && now === 'proven') {
        ofProject.isHeldBack = false;
        again([...ofProject.lanes.values()]);
      }
      for (const [key] of way) wake(key);
    };
  }

  function wake(key: string): void {
    const gate = gates.get(key);
    while (gate !== undefined && gate.used < gate.limit) {
      const lane = gate.parked.take();
      if (lane === undefined) break;
      // A lane that wants more goes to the end of the line.
      if (advance(lane) && lane.waiters.size > 0) park(lane, key, gate.limit);
    }
    if (gate?.used === 0 && gate.parked.size === 0) gates.delete(key);
  }

  function again(some: readonly Lane[]): void {
    for (const lane of some) lane.unpark();
    // One lookup of each lane, then the next of each.
    for (let left = some; left.length > 0; ) left = left.filter((lane) => advance(lane) && lane.waiters.size > 0);
  }

  function enter(waiter: Waiter, namespace: string): void {
    const { host, project } = waiter.claim;
    const ofHost: Host = hosts.get(host) ?? { projects: new Map(), isHeldBack: false };
    hosts.set(host, ofHost);
    const ofProject: Project = ofHost.projects.get(project) ?? { lanes: new Map(), isHeldBack: false };
    ofHost.projects.set(project, ofProject);
    const known = ofProject.lanes.get(namespace);
    const lane = known ?? { host, project, namespace, waiters: new Set(), unpark: () => {} };
    ofProject.lanes.set(namespace, lane);
    lane.waiters.add(waiter);
    waiter.lanes.add(lane);
    if (known === undefined) advance(lane);
  }

  function leave(waiter: Waiter, lane: Lane): void {
    lane.waiters.delete(waiter);
    waiter.lanes.delete(lane);
    if (lane.waiters.size > 0) return;
    lane.unpark();
    const ofHost = hosts.get(lane.host);
    const ofProject = ofHost?.projects.get(lane.project);
    ofProject?.lanes.delete(lane.namespace);
    if (ofProject?.lanes.size === 0) ofHost?.projects.delete(lane.project);
    if (ofHost?.projects.size === 0) hosts.delete(lane.host);
  }

  return {
    acquire(claim, signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      return new Promise((resolve, reject) => {
        let forget = (): void => {};
        let isOver = false;
        const end = (): void => {
          isOver = true;
          forget();
        };
        const waiter: Waiter = {
          claim,
          lanes: new Set(),
          start(release) {
            end();
            resolve(release);
          },
        };
        const forgetJoin = claim.askers.each((namespace) => {
          if (!isOver) enter(waiter, namespace);
        });
        const forgetAbort = onAbort(signal, () => {
          for (const lane of waiter.lanes) leave(waiter, lane);
          end();
          reject(signal.reason);
        });
        forget = () => {
          forgetJoin();
          forgetAbort();
        };
        // It may have started at once.
        if (isOver) forget();
      });
    },
  };
}
