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
import { createAnnouncer, regardingPod } from '../announce.ts';
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

/** A pod on a wrong node: what the metric has counted for it, and how often its eviction was blocked. */
type Found = { readonly uid: string; readonly counted: Set<string>; blocked: number };

const BLOCKED_BASE_MS = 10_000;
const BLOCKED_CAP_MS = 5 * 60_000;

/**
 * Creates the wrong-node controller: it finds pods that cannot run on their nodes, writes Events, and evicts pods that come back
 * elsewhere. One worker is enough for its queue, because evictions are rare.
 */
export function createWrongNodeController(options: WrongNodeOptions) {
  const { pods, nodes, daemonSets, namespaces, images, evictor, clock } = options;
  const announcer = createAnnouncer(options.events, clock);
  const records = createRecords();
  const limits = createEvictionLimits(clock);
  const waiting = createWaiting(clock);
  const found = new Map<string, Found>();
  /** The pods with a broken container: few, and so no scan of all pods is needed. */
  const broken = new Set<string>();

  function forget(key: string): void {
    waiting.set(key, []);
    if (found.delete(key)) records.forget(key);
  }

  /** Judges a pod. `pending`: a lookup of one of its images is under way. `unknown`: there is no evidence, but a lookup failed. */
  function findingOf(
    key: string,
    pod: Pod,
    architecture: string,
    settings: Settings,
  ): WrongNodeFinding | 'pending' | 'unknown' | undefined {
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

  const brokenThat = (isMeant: (pod: Pod) => boolean): string[] =>
    [...broken].filter((key) => {
      const pod = pods.get(key);
      return pod !== undefined && isMeant(pod);
    });

  const daemonSetOf = ({ owner, namespace }: Pod): DaemonSet | undefined => {
    const daemonSet = isDaemonSet(owner) ? daemonSets.get(`${namespace}/${owner.name}`) : undefined;
    return daemonSet?.uid === owner?.uid ? daemonSet : undefined;
  };

  function isLeftAlone(pod: Pod, namespace: Namespace, settings: Settings): boolean {
    const skipped = skipPod(pod, namespace, settings);
    if (skipped !== 'daemon-pod') return skipped !== undefined;
    const daemonSet = daemonSetOf(pod);
    if (daemonSet === undefined) return false;
    return skipDaemonSet(daemonSet, namespace, settings) !== undefined;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = pods.get(key);
    const node = nodes.get(pod?.nodeName ?? '');
    const architecture = node && nodeArchitecture(node);
    const namespace = namespaces.get(pod?.namespace ?? '');
    // A missing node, architecture or namespace will be followed by an event.
    if (pod?.broken === undefined || node === undefined || architecture === undefined || namespace === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const settings = settingsFor(options.settings(), { namespace, labels: pod.labels });
    if (isLeftAlone(pod, namespace, settings)) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const finding = findingOf(key, pod, architecture, settings);
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
    return act(key, pod, finding, { ...node, architecture }, settings, signal);
  }

  async function act(
    key: string,
    pod: Pod,
    finding: WrongNodeFinding,
    node: Node & { readonly architecture: string },
    settings: Settings,
    signal: AbortSignal,
  ): Promise<Result> {
    const report = (action: WrongNodeAction, outcome: string) => {
      const regarding = regardingPod(pod);
      const problem: Problem = {
        reason: 'WrongNode',
        action: settings.onWrongNode === 'evict' ? 'Evicting' : 'Placing',
        note: wrongNodeNote(finding, node, outcome),
      };
      // The pod is being deleted, so its Event need not be remembered.
      if (action === 'evicted') options.events.emit({ regarding, type: 'Warning', ...problem });
      else announcer.report(records.of(key, pod.uid), regarding, problem);
      const counted = found.get(key)?.counted;
      const id = `${finding.reason} ${action}`;
      if (counted?.has(id)) return;
      counted?.add(id);
      options.onWrongNode(finding.reason, action);
    };
    const warn = (why: string, againInMs = HELD_AGAIN_MS): Result => {
      report('warned', `not evicted: ${why}`);
      return { outcome: 'held', againInMs, detail: `not evicted: ${why}` };
    };
    const obstacle = (whole?: Whole) => {
      const daemonSet = daemonSetOf(pod);
      const surroundings: EvictionSurroundings = {
        architectures: options.clusterArchitectures(),
        nodes: nodes.values(),
        daemonTolerations: daemonSet && (daemonSet.template.tolerations ?? []),
      };
      return whyNotEvicted(pod, finding, node, surroundings, settings, whole);
    };

    const why = obstacle();
    if (why !== undefined) return warn(why);
    const owner = pod.owner?.uid ?? '';
    const { ofOwnerMs, ofAllMs } = limits.waitMs(owner);
    if (ofOwnerMs > 0) {
      const said = `${MOST_OF_OWNER} pods of its ${pod.owner?.kind} were evicted within 10 minutes, another eviction would not help`;
      return warn(said, ofOwnerMs);
    }
    if (ofAllMs > 0) return { outcome: 'waiting', againInMs: ofAllMs };
    const object = await evictor.fetch(pod, signal);
    if (object === undefined) return { outcome: 'unchanged' };
    // The pod has changed or was replaced by another one of its name. The event of that change will follow.
    const now = readPod(object, pod);
    if (now.uid !== pod.uid || now.broken !== pod.broken) return { outcome: 'unchanged' };
    const whyStill = obstacle(readWhole(object));
    if (whyStill !== undefined) return warn(whyStill);
    const eviction = await evictor.evict(pod, signal);
    switch (eviction.kind) {
      case 'gone':
        return { outcome: 'unchanged' };
      case 'evicted':
        limits.evicted(owner);
        report('evicted', 'evicted');
        return { outcome: 'written', detail: 'evicted' };
      case 'blocked': {
        report('blocked', `its eviction is blocked and will be tried again: ${eviction.reason}`);
        const attempt = found.get(key);
        const againInMs = backoff(attempt?.blocked ?? 0, BLOCKED_BASE_MS, BLOCKED_CAP_MS, clock.random);
        if (attempt !== undefined) attempt.blocked++;
        return { outcome: 'waiting', againInMs };
      }
      default:
        return eviction satisfies never;
    }
  }

  return {
    reconcile,
    /**
     * Updates the index after a pod changed, is gone or was decided. Returns whether the pod needs a reconciliation. Starts no
     * lookup.
     */
    suspects(key: string): boolean {
      const pod = pods.get(key);
      if (pod?.broken === undefined || pod.nodeName === undefined) broken.delete(key);
      else broken.add(key);
      if (pod?.broken !== undefined && nodes.get(pod.nodeName ?? '') !== undefined) return true;
      forget(key);
      return false;
    },
    /** Returns the pods that were found on wrong nodes; with `node`: only those on that node. */
    found: (node?: string): readonly string[] =>
      [...found.keys()].filter((key) => node === undefined || pods.get(key)?.nodeName === node),
    isFound: (key: string, uid: string): boolean => found.get(key)?.uid === uid,
    /** Counts the pods that were found on wrong nodes. */
    count: (): number => found.size,
    /** Returns the pods on a node that have a broken container. */
    podsOn: (node: string): readonly string[] => brokenThat(({ nodeName }) => nodeName === node),
    /** Returns the pods of a DaemonSet (`namespace/name`) that have a broken container. */
    podsOf: (daemonSet: string): readonly string[] =>
      brokenThat(({ owner, namespace }) => isDaemonSet(owner) && `${namespace}/${owner.name}` === daemonSet),
    /** Returns the pods to reconcile again, and when, after the lookup of an image (its canonical name) has ended. */
    lookupEnded: waiting.lookupEnded,
  };
}

/** The least time between two evictions of any pods. */
const PACE_MS = 10_000;
const WINDOW_MS = 10 * 60_000;
/** How many pods of one owner may be evicted within the window. If these did not help, more evictions will not help either. */
const MOST_OF_OWNER = 3;

/**
 * Creates limits that keep evictions rare, so that a mistake of archaware cannot empty a cluster; at first there are no past
 * evictions.
 */
function createEvictionLimits({ monotonic }: Clock) {
  /** Those within the window: few, at one in ten seconds. */
  let evictions: readonly { readonly owner: string; readonly at: number }[] = [];
  const leftMs = (eviction: { readonly at: number } | undefined, ms: number) =>
    eviction === undefined ? 0 : eviction.at + ms - monotonic();
  return {
    /** Returns how long the next eviction of this owner's pods must wait by each limit; 0 or less: not at all. */
    waitMs(owner: string): { readonly ofOwnerMs: number; readonly ofAllMs: number } {
      const ofOwner = evictions.filter((each) => each.owner === owner);
      return {
        ofOwnerMs: leftMs(ofOwner.at(-MOST_OF_OWNER), WINDOW_MS),
        ofAllMs: leftMs(evictions.at(-1), PACE_MS),
      };
    },
    evicted(owner: string): void {
      evictions = [...evictions.filter((each) => leftMs(each, WINDOW_MS) > 0), { owner, at: monotonic() }];
    },
  };
}

/** The wrong-node controller with its queue, and the listeners that put pods into the queue. */
export type WrongNodes = ReturnType<typeof createWrongNodes>;

/** Creates the wrong-node controller and its queue. */
export function createWrongNodes(options: WrongNodeOptions, { add, forEach }: Queues) {
  const wrongNode = createWrongNodeController(options);
  // One worker is enough, because evictions are rare.
  const controller: Controller = add('wrong-node', wrongNode.reconcile, () => false, 1);
  function look(keys: Iterable<string>): void {
    forEach(keys, (key) => {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    });
  }
  return {
    controller,
    /** Queues the present pods at the beginning of a term. */
    begin: (): void => look(options.pods.keys()),
    count: wrongNode.count,
    isFound: wrongNode.isFound,
    /** Call it when a pod was decided or bound, is gone, or when one of its containers broke or runs again. */
    podChanged(key: string): void {
      if (wrongNode.suspects(key)) controller.enqueue(key);
    },
    daemonSetDecided: (key: string): void => look(wrongNode.podsOf(key)),
    /** Call it when a node's architecture (`architectureChanged`) or its taints changed. Evictions may wait for a taint. */
    nodeChanged: (name: string, architectureChanged: boolean): void =>
      look(architectureChanged ? wrongNode.podsOn(name) : wrongNode.found(name)),
    lookupEnded(canonical: string): void {
      for (const { key, inMs } of wrongNode.lookupEnded(canonical)) {
        if (wrongNode.suspects(key)) controller.enqueueAfter(key, inMs);
      }
    },
    settingsChanged: (): void => look(wrongNode.found()),
  };
}
