import { backoff, type Clock } from '../../kit/clock.ts';
import type { Controller, Queues, Result } from '../../kube/control-loop.ts';
import type { Store } from '../../kube/watch/collection.ts';
import type { Evictor } from '../../kube/writer.ts';
import { settingsFor, skipDaemonSet, skipPod } from '../../placement/eligibility.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import type { Problem } from '../../placement/object-problems.ts';
import type { PodImage } from '../../placement/objects/containers.ts';
import type { DaemonSet } from '../../placement/objects/daemonset.ts';
import { isDaemonSet } from '../../placement/objects/kinds.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import { type Pod, readPod } from '../../placement/objects/pod.ts';
import type { Settings } from '../../placement/settings.ts';
import {
  failsByItself,
  findWrongNode,
  type WrongNodeFinding,
  type WrongReason,
  whatIsKnown,
  whatWasPulled,
} from '../../placement/wrong-node/judge.ts';
import {
  type EvictionSurroundings,
  readWhole,
  type Whole,
  whyNotEvicted,
} from '../../placement/wrong-node/may-evict.ts';
import { wrongNodeNote } from '../../placement/wrong-node/note.ts';
import { type Announcer, createAnnouncer, regardingPod } from '../announce.ts';
import type { PlacingOptions, WrongNodeAction } from '../controller-options.ts';
import type { ImageSource } from '../image-source.ts';
import { createRecords, HELD_AGAIN_MS, OPEN_AGAIN_MS } from '../memory.ts';
import { createWaiting } from '../waiting.ts';

type WrongNodeOptions = Pick<
  PlacingOptions,
  'namespaces' | 'settings' | 'clusterArchitectures' | 'events' | 'clock'
> & {
  readonly pods: Store<Pod>;
  readonly nodes: Store<Node>;
  readonly daemonSets: Pick<Store<DaemonSet>, 'get'>;
  readonly images: Pick<ImageSource, 'answer' | 'namesOf' | 'canonicalOf'>;
  readonly evictor: Evictor;
  /** Called once for each pod, reason and action. */
  readonly onWrongNode: (reason: WrongReason, action: WrongNodeAction) => void;
};

/** What the wrong-node controller works with and knows. */
export type WrongNodeParts = WrongNodeOptions & {
  readonly announcer: Announcer;
  readonly records: ReturnType<typeof createRecords>;
  readonly limits: ReturnType<typeof createEvictionLimits>;
  readonly waiting: ReturnType<typeof createWaiting>;
  /** The pods on wrong nodes: what the metric has counted for each, and how often its eviction was blocked. */
  readonly found: Map<string, { readonly uid: string; readonly counted: Set<string>; blocked: number }>;
  /** The pods with a broken container: few, and so no scan of all pods is needed. */
  readonly broken: Set<string>;
};

const BLOCKED_BASE_MS = 10_000;
const BLOCKED_CAP_MS = 5 * 60_000;

/** The wrong-node controller with its queue, and the listeners that put pods into the queue. */
export type WrongNodes = ReturnType<typeof createWrongNodes>;

/** Creates the wrong-node controller and its queue: it finds pods that cannot run on their nodes, writes Events, and evicts pods that come back elsewhere. */
export function createWrongNodes(options: WrongNodeOptions, { add, forEach }: Queues) {
  const parts = wrongNodeParts(options);
  // One worker is enough, because evictions are rare.
  const controller: Controller = add(
    'wrong-node',
    (key, signal) => reconcile(parts, key, signal),
    () => false,
    1,
  );
  function podChanged(key: string): void {
    if (suspects(parts, key)) controller.enqueue(key);
  }
  return {
    controller,
    /** Queues the present pods at the beginning of a term. */
    begin: (): void => forEach(options.pods.keys(), podChanged),
    /** Counts the pods that were found on wrong nodes. */
    count: (): number => parts.found.size,
    isFound: (key: string, uid: string): boolean => parts.found.get(key)?.uid === uid,
    /** Call it when a pod was decided or bound, is gone, or when one of its containers broke or runs again. */
    podChanged,
    daemonSetDecided: (key: string): void => forEach(podsOf(parts, key), podChanged),
    /** Call it when a node's architecture (`architectureChanged`) or its taints changed. Evictions may wait for a taint. */
    nodeChanged: (name: string, architectureChanged: boolean): void =>
      forEach(architectureChanged ? podsOn(parts, name) : foundOn(parts, name), podChanged),
    lookupEnded(canonical: string): void {
      for (const { key, inMs } of parts.waiting.lookupEnded(canonical)) {
        if (suspects(parts, key)) controller.enqueueAfter(key, inMs);
      }
    },
    settingsChanged: (): void => forEach([...parts.found.keys()], podChanged),
  };
}

/** Returns the controller as it begins: it knows of no pod. */
export function wrongNodeParts(options: WrongNodeOptions): WrongNodeParts {
  const { events, clock } = options;
  return {
    ...options,
    ...{ announcer: createAnnouncer(events, clock), records: createRecords(), limits: createEvictionLimits(clock) },
    ...{ waiting: createWaiting(clock), found: new Map(), broken: new Set() },
  };
}

/** Updates the index after a pod changed, is gone or was decided. Returns whether the pod needs a reconciliation. Starts no lookup. */
export function suspects(parts: WrongNodeParts, key: string): boolean {
  const { broken, nodes } = parts;
  const pod = parts.pods.get(key);
  if (pod?.broken === undefined || pod.nodeName === undefined) broken.delete(key);
  else broken.add(key);
  if (pod?.broken !== undefined && nodes.get(pod.nodeName ?? '') !== undefined) return true;
  forget(parts, key);
  return false;
}

/** Returns the pods on a node that were found to be wrong there. */
export function foundOn({ found, pods }: WrongNodeParts, node: string): string[] {
  return [...found.keys()].filter((key) => pods.get(key)?.nodeName === node);
}

/** Returns the pods on a node that have a broken container. */
export function podsOn(parts: WrongNodeParts, node: string): string[] {
  return brokenThat(parts, ({ nodeName }) => nodeName === node);
}

/** Returns the pods of a DaemonSet (`namespace/name`) that have a broken container. */
export function podsOf(parts: WrongNodeParts, daemonSet: string): string[] {
  return brokenThat(parts, ({ owner, namespace }) => isDaemonSet(owner) && `${namespace}/${owner.name}` === daemonSet);
}

function brokenThat({ broken, pods }: WrongNodeParts, isMeant: (pod: Pod) => boolean): string[] {
  return [...broken].filter((key) => {
    const pod = pods.get(key);
    return pod !== undefined && isMeant(pod);
  });
}

/** Judges a pod that may be on a wrong node, and does what the settings say about one that is. */
export async function reconcile(parts: WrongNodeParts, key: string, signal: AbortSignal): Promise<Result> {
  const { found, records } = parts;
  const pod = parts.pods.get(key);
  const node = parts.nodes.get(pod?.nodeName ?? '');
  const architecture = node && nodeArchitecture(node);
  const namespace = parts.namespaces.get(pod?.namespace ?? '');
  // A missing node, architecture or namespace will be followed by an event.
  if (pod?.broken === undefined || node === undefined || architecture === undefined || namespace === undefined) {
    forget(parts, key);
    return { outcome: 'unchanged' };
  }
  const settings = settingsFor(parts.settings(), { namespace, labels: pod.labels });
  if (isLeftAlone(parts, pod, namespace, settings)) {
    forget(parts, key);
    return { outcome: 'unchanged' };
  }
  const at = { key, pod, node: { ...node, architecture }, settings, signal };
  const finding = findingOf(parts, at);
  if (finding === 'pending') return { outcome: 'unchanged' };
  if (finding === undefined || finding === 'unknown') {
    if (found.delete(key)) records.forget(key);
    // A failed lookup is repeated only if somebody asks again.
    return { outcome: 'unchanged', againInMs: finding && OPEN_AGAIN_MS };
  }
  if (found.get(key)?.uid !== pod.uid) {
    records.forget(key);
    found.set(key, { uid: pod.uid, counted: new Set(), blocked: 0 });
  }
  return act(parts, { ...at, finding });
}

function forget({ waiting, found, records }: WrongNodeParts, key: string): void {
  waiting.set(key, []);
  if (found.delete(key)) records.forget(key);
}

function isLeftAlone(parts: WrongNodeParts, pod: Pod, namespace: Namespace, settings: Settings): boolean {
  const skipped = skipPod(pod, namespace, settings);
  if (skipped !== 'daemon-pod') return skipped !== undefined;
  const daemonSet = daemonSetOf(parts, pod);
  if (daemonSet === undefined) return false;
  return skipDaemonSet(daemonSet, namespace, settings) !== undefined;
}

function daemonSetOf({ daemonSets }: WrongNodeParts, { owner, namespace }: Pod): DaemonSet | undefined {
  const daemonSet = isDaemonSet(owner) ? daemonSets.get(`${namespace}/${owner.name}`) : undefined;
  return daemonSet?.uid === owner?.uid ? daemonSet : undefined;
}

/** Judges a pod. `pending`: a lookup of one of its images is under way. `unknown`: there is no evidence, but a lookup failed. */
function findingOf(
  { images, waiting }: WrongNodeParts,
  at: SuspectedPod,
): WrongNodeFinding | 'pending' | 'unknown' | undefined {
  const { key, pod, settings } = at;
  const { architecture } = at.node;
  const { namespace, pullSecrets } = pod;
  const answerOf = (image: PodImage) => images.answer(image, namespace, pullSecrets);
  const pulled = whatWasPulled(pod, settings, images.namesOf, answerOf);
  const awaited = (more: readonly string[] = []) =>
    waiting.set(key, [...pulled.pending, ...pulled.unknown, ...more].map(images.canonicalOf));
  // Without room to remember what it waits for, it is looked at again after a while.
  const pending = awaited() ? 'pending' : 'unknown';
  if (pulled.pending.length > 0) return pending;
  if (failsByItself(pod, architecture, pulled)) return undefined;
  const known = whatIsKnown(pod, settings, images.namesOf, answerOf);
  const isReported = awaited([...known.pending, ...known.unknown]);
  if (known.pending.length > 0) return isReported ? 'pending' : 'unknown';
  const isUnknown = pulled.unknown.length + known.unknown.length > 0;
  return findWrongNode(pod, architecture, known, pulled) ?? (isUnknown ? 'unknown' : undefined);
}

type SuspectedPod = {
  readonly key: string;
  readonly pod: Pod;
  readonly node: Node & { readonly architecture: string };
  readonly settings: Settings;
  readonly signal: AbortSignal;
};

type WrongNodeCase = SuspectedPod & { readonly finding: WrongNodeFinding };

async function act(parts: WrongNodeParts, at: WrongNodeCase): Promise<Result> {
  const { evictor, limits, found } = parts;
  const { key, pod, signal } = at;
  const why = obstacle(parts, at);
  if (why !== undefined) return warn(parts, at, why);
  const owner = pod.owner?.uid ?? '';
  const { ofOwnerMs, ofAllMs } = limits.waitMs(owner);
  if (ofOwnerMs > 0) {
    const said = `${MOST_OF_OWNER} pods of its ${pod.owner?.kind} were evicted within 10 minutes, another eviction would not help`;
    return warn(parts, at, said, ofOwnerMs);
  }
  if (ofAllMs > 0) return { outcome: 'waiting', againInMs: ofAllMs };
  const object = await evictor.fetch(pod, signal);
  if (object === undefined) return { outcome: 'unchanged' };
  // The pod has changed or was replaced by another one of its name. The event of that change will follow.
  const now = readPod(object, pod);
  if (now.uid !== pod.uid || now.broken !== pod.broken) return { outcome: 'unchanged' };
  const whyStill = obstacle(parts, at, readWhole(object));
  if (whyStill !== undefined) return warn(parts, at, whyStill);
  const eviction = await evictor.evict(pod, signal);
  switch (eviction.kind) {
    case 'gone':
      return { outcome: 'unchanged' };
    case 'evicted':
      limits.evicted(owner);
      report(parts, at, 'evicted', 'evicted');
      return { outcome: 'written', detail: 'evicted' };
    case 'blocked': {
      report(parts, at, 'blocked', `its eviction is blocked and will be tried again: ${eviction.reason}`);
      const attempt = found.get(key);
      const againInMs = backoff(attempt?.blocked ?? 0, BLOCKED_BASE_MS, BLOCKED_CAP_MS, parts.clock.random);
      if (attempt !== undefined) attempt.blocked++;
      return { outcome: 'waiting', againInMs };
    }
    default:
      return eviction satisfies never;
  }
}

/** Returns why the pod is not evicted; undefined: nothing is known against it. `whole`: the pod as it was just read. */
function obstacle(parts: WrongNodeParts, { pod, finding, node, settings }: WrongNodeCase, whole?: Whole) {
  const daemonSet = daemonSetOf(parts, pod);
  const surroundings: EvictionSurroundings = {
    architectures: parts.clusterArchitectures(),
    nodes: parts.nodes.values(),
    daemonTolerations: daemonSet && (daemonSet.template.tolerations ?? []),
  };
  return whyNotEvicted(pod, finding, node, surroundings, settings, whole);
}

function warn(parts: WrongNodeParts, at: WrongNodeCase, why: string, againInMs = HELD_AGAIN_MS): Result {
  report(parts, at, 'warned', `not evicted: ${why}`);
  return { outcome: 'held', againInMs, detail: `not evicted: ${why}` };
}

function report(parts: WrongNodeParts, at: WrongNodeCase, action: WrongNodeAction, outcome: string): void {
  const { key, pod, finding, node, settings } = at;
  const regarding = regardingPod(pod);
  const note = wrongNodeNote(finding, node, outcome);
  const does = settings.onWrongNode === 'evict' ? 'Evicting' : 'Placing';
  const problem: Problem = { reason: 'WrongNode', action: does, note };
  // The pod is being deleted, so its Event need not be remembered.
  if (action === 'evicted') parts.events.emit({ regarding, type: 'Warning', ...problem });
  else parts.announcer.report(parts.records.of(key, pod.uid), regarding, problem);
  const counted = parts.found.get(key)?.counted;
  const id = `${finding.reason} ${action}`;
  if (counted?.has(id)) return;
  counted?.add(id);
  parts.onWrongNode(finding.reason, action);
}

/** The least time between two evictions of any pods. */
const PACE_MS = 10_000;
const WINDOW_MS = 10 * 60_000;
/** How many pods of one owner may be evicted within the window. If these did not help, more evictions will not help either. */
const MOST_OF_OWNER = 3;

/** Creates limits that keep evictions rare, so that a mistake of archaware cannot empty a cluster; at first there are no past evictions. */
function createEvictionLimits({ monotonic }: Clock) {
  /** Those within the window: few, at one in ten seconds. */
  let evictions: readonly { readonly owner: string; readonly at: number }[] = [];
  const leftMs = (eviction: { readonly at: number } | undefined, ms: number) =>
    eviction === undefined ? 0 : eviction.at + ms - monotonic();
  return {
    /** Returns how long the next eviction of this owner's pods must wait by each limit; 0 or less: not at all. */
    waitMs(owner: string): { readonly ofOwnerMs: number; readonly ofAllMs: number } {
      const ofOwner = evictions.filter((each) => each.owner === owner);
      return { ofOwnerMs: leftMs(ofOwner.at(-MOST_OF_OWNER), WINDOW_MS), ofAllMs: leftMs(evictions.at(-1), PACE_MS) };
    },
    evicted(owner: string): void {
      evictions = [...evictions.filter((each) => leftMs(each, WINDOW_MS) > 0), { owner, at: monotonic() }];
    },
  };
}
