import { type Askers, waitForTurn } from '../../kit/fairness/askers.ts';
import type { Circuits, Standing } from './circuit.ts';
import { createGates, type Lane, type Way } from './gates.ts';
import type { Target } from './place.ts';

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

/** Returns the request for a slot at a target, for these namespaces. */
export function claimOf({ endpoint, place }: Target, askers: Askers, circuits: Pick<Circuits, 'standing'>): Claim {
  return { host: endpoint.host, project: place.project.key, askers, standing: () => circuits.standing(place) };
}

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

type Waiter = { readonly claim: Claim; readonly start: (release: () => void) => void };

/** The lookups of one namespace (the group) at one project, in order; never empty. */
type Line = Required<Lane> & { readonly host: string; readonly project: string; readonly waiters: Set<Waiter> };

/** The lines of one project, by namespace. `isHeldBack`: one of them was parked while the project was not proven. */
type Project = { readonly lines: Map<string, Line>; isHeldBack: boolean };

/** `isHeldBack`: one of its lines was parked while the host was not known to answer. */
type Host = { readonly projects: Map<string, Project>; isHeldBack: boolean };

export function createLimiter({ perHost, proven, unproven }: LimiterOptions): Limiter {
  const gates = createGates<Line>(advance);
  const hosts = new Map<string, Host>();

  function wayOf({ host, project, group: namespace }: Line, standing: Standing): Way {
    const [kind, { perNamespace, total }] =
      standing === 'proven' || standing === 'new' ? ['proven', proven] : ['unproven', unproven];
    // Paths that hang would take all slots, so one slot of a host is left to its other projects, and one of a project to
    // the other namespaces.
    const most = Math.max(1, perHost - 1);
    const mostOfOne = Math.max(1, most - 1);
    const way: Way = [
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

  /** Starts the first lookup of a line, or parks the line where it has to wait. Returns whether it started one and has more. */
  function advance(line: Line): boolean {
    const [waiter] = line.waiters;
    if (waiter === undefined) return false;
    const standing = waiter.claim.standing();
    const way = wayOf(line, standing);
    if (!gates.pass(line, way)) {
      const host = hosts.get(line.host);
      const project = host?.projects.get(line.project);
      if (project !== undefined && standing !== 'proven') project.isHeldBack = true;
      if (host !== undefined && standing === 'unknown') host.isHeldBack = true;
      return false;
    }
    leave(waiter, line);
    waiter.start(releaseOf(waiter.claim, way));
    return line.waiters.size > 0;
  }

  function releaseOf({ host, project, standing }: Claim, way: Way): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      gates.give(way);
      // The project or the host has answered since, so waiting lines need other slots now.
      const now = standing();
      const ofHost = hosts.get(host);
      const ofProject = ofHost?.projects.get(project);
      if (ofHost?.isHeldBack && (now === 'proven' || now === 'new')) {
        ofHost.isHeldBack = false;
        again([...ofHost.projects.values()].flatMap(({ lines }) => [...lines.values()]));
      } else if (ofProject?.isHeldBack && now === 'proven') {
        ofProject.isHeldBack = false;
        again([...ofProject.lines.values()]);
      }
      gates.wake(way);
    };
  }

  function again(some: readonly Line[]): void {
    for (const line of some) line.unpark();
    // One lookup of each line, then the next of each.
    for (let left = some; left.length > 0; ) left = left.filter(advance);
  }

  /** Joins the line of a namespace; returns a function that leaves it. */
  function enter(waiter: Waiter, namespace: string): () => void {
    const { host, project } = waiter.claim;
    const ofHost: Host = hosts.get(host) ?? { projects: new Map(), isHeldBack: false };
    hosts.set(host, ofHost);
    const ofProject: Project = ofHost.projects.get(project) ?? { lines: new Map(), isHeldBack: false };
    ofHost.projects.set(project, ofProject);
    const known = ofProject.lines.get(namespace);
    const line = known ?? { group: namespace, host, project, waiters: new Set(), unpark: () => {} };
    ofProject.lines.set(namespace, line);
    line.waiters.add(waiter);
    if (known === undefined) advance(line);
    return () => leave(waiter, line);
  }

  function leave(waiter: Waiter, line: Line): void {
    if (!line.waiters.delete(waiter) || line.waiters.size > 0) return;
    line.unpark();
    const ofHost = hosts.get(line.host);
    const ofProject = ofHost?.projects.get(line.project);
    ofProject?.lines.delete(line.group);
    if (ofProject?.lines.size === 0) ofHost?.projects.delete(line.project);
    if (ofHost?.projects.size === 0) hosts.delete(line.host);
  }

  return {
    acquire: (claim, signal) =>
      waitForTurn(claim.askers, signal, (namespace, start) => enter({ claim, start }, namespace)),
  };
}
