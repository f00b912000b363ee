import { backoff, type Clock } from '../kube/clock.ts';
import type { Reconciler, Result } from '../kube/controller.ts';
import type { EventRecorder, Occurrence } from '../kube/events.ts';
import type { Evictor } from '../kube/eviction.ts';
import type { Store } from '../kube/store.ts';
import { type Namespace, skipPod } from '../placement/eligibility.ts';
import {
  mayBeWrong,
  type Origin,
  readOrigin,
  type WrongPlace,
  type WrongReason,
  whatIsKnown,
  whyNotEvicted,
  wrongNodeNote,
  wrongPlace,
} from '../placement/eviction.ts';
import { type Node, nodeArchitecture } from '../placement/node.ts';
import type { Pod } from '../placement/pod.ts';
import { settingsFor } from '../placement/policy.ts';
import type { Settings } from '../placement/settings.ts';
import { createAnnouncer } from './announce.ts';
import { createEvictionLimits, MOST_OF_OWNER } from './eviction-limits.ts';
import type { ImageSource } from './images.ts';
import { HELD_AGAIN_MS, type PlacementState } from './placement-state.ts';
import { createWaiting } from './waiting.ts';

/** What was done about a pod on a wrong node, as `archaware_wrong_node_pods_total` counts it. */
export type WrongNodeAction = 'warned' | 'evicted' | 'blocked';

export type WrongNodeOptions = {
  readonly pods: Store<Pod>;
  readonly nodes: Store<Node>;
  readonly namespaces: Store<Namespace>;
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  readonly images: Pick<ImageSource, 'answer' | 'isStale' | 'namesOf' | 'canonicalOf'>;
  /** What was decided for pods and for DaemonSets, by their keys. */
  readonly podStates: ReadonlyMap<string, PlacementState>;
  readonly daemonSetStates: ReadonlyMap<string, PlacementState>;
  readonly evictor: Evictor;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /** Once for each pod, reason and action. */
  readonly onWrongNode: (reason: WrongReason, action: WrongNodeAction) => void;
};

/** Finds pods on nodes that do not run their images, tells of them, and evicts those that come back elsewhere. */
export type WrongNodeController = {
  readonly reconcile: Reconciler;
  /** Whether a pod is worth a reconciliation; costs next to nothing where it is not. */
  suspects(key: string): boolean;
  /** The pods that were found and are still there; those on one node. */
  found(node?: string): readonly string[];
  /** The pods on a node. */
  podsOn(node: string): readonly string[];
  /** The pods of a DaemonSet, where something new was decided for it. */
  podsOf(daemonSet: string): readonly string[];
  /** The pods that wait for an image, by its canonical name. */
  waitingFor(image: string): readonly string[];
};

/** A pod in the wrong place: what was counted of it, and how often its eviction was blocked. */
type Found = { readonly uid: string; readonly counted: Set<string>; blocked: number };

const BLOCKED_BASE_MS = 10_000;
const BLOCKED_CAP_MS = 5 * 60_000;

/** Creates it; its queue needs one worker, as evictions are few. */
export function createWrongNodeController(options: WrongNodeOptions): WrongNodeController {
  const { pods, nodes, namespaces, images, podStates, daemonSetStates, evictor, clock } = options;
  const announcer = createAnnouncer(options.events, clock);
  const limits = createEvictionLimits(clock);
  const waiting = createWaiting();
  const found = new Map<string, Found>();
  /** What was decided for each DaemonSet when its pods were looked at. */
  const looked = new Map<string, PlacementState['decision']>();

  function forget(key: string): void {
    waiting.set(key, []);
    if (found.delete(key)) announcer.forget(key);
  }

  function decisionFor(key: string, { owner, namespace }: Pod): PlacementState['decision'] | undefined {
    const states = owner?.kind === 'DaemonSet' ? daemonSetStates : podStates;
    return states.get(owner?.kind === 'DaemonSet' ? `${namespace}/${owner.name}` : key)?.decision;
  }

  function placeOf(key: string, pod: Pod, architecture: string, settings: Settings): WrongPlace | undefined {
    const { namespace, pullSecrets } = pod;
    const known = whatIsKnown(
      pod,
      settings,
      images.namesOf,
      (image) => images.answer(image, namespace, pullSecrets),
      (image) => images.isStale(image, namespace, pullSecrets),
    );
    waiting.set(key, [...known.pending, ...known.unknown].map(images.canonicalOf));
    return known.pending.length > 0 ? undefined : wrongPlace(pod, architecture, known);
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = pods.get(key);
    const node = nodes.get(pod?.nodeName ?? '');
    const architecture = node && nodeArchitecture(node);
    const namespace = namespaces.get(pod?.namespace ?? '');
    // Without a node or its architecture there is an event to come.
    if (pod === undefined || node === undefined || architecture === undefined || namespace === undefined) {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const settings = settingsFor(options.settings(), { namespace, labels: pod.labels });
    const skipped = skipPod(pod, namespace, settings);
    if ((skipped !== undefined && skipped !== 'daemon-pod') || decisionFor(key, pod)?.kind === 'skip') {
      forget(key);
      return { outcome: 'unchanged' };
    }
    const place = placeOf(key, pod, architecture, settings);
    if (place === undefined) {
      if (found.delete(key)) announcer.forget(key);
      return { outcome: 'unchanged' };
    }
    if (found.get(key)?.uid !== pod.uid) {
      announcer.forget(key);
      found.set(key, { uid: pod.uid, counted: new Set(), blocked: 0 });
    }
    return act(key, pod, place, { ...node, architecture }, settings, signal);
  }

  async function act(
    key: string,
    pod: Pod,
    place: WrongPlace,
    node: Node & { readonly architecture: string },
    settings: Settings,
    signal: AbortSignal,
  ): Promise<Result> {
    const tell = (action: WrongNodeAction, outcome: string) => {
      const { uid, namespace, name } = pod;
      const occurrence: Occurrence = {
        regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
        type: 'Warning',
        reason: 'WrongNode',
        action: settings.onWrongNode === 'evict' ? 'Evicting' : 'Placing',
        note: wrongNodeNote(place, pod.startError, node, outcome),
      };
      // Of a pod that goes there is nothing to remember.
      if (action === 'evicted') options.events.emit(occurrence);
      else announcer.tell(key, occurrence);
      const counted = found.get(key)?.counted;
      const id = `${place.reason} ${action}`;
      if (counted?.has(id)) return;
      counted?.add(id);
      options.onWrongNode(place.reason, action);
    };
    const warn = (why: string, againInMs = HELD_AGAIN_MS): Result => {
      tell('warned', `not evicted: ${why}`);
      return { outcome: 'held', againInMs };
    };
    const obstacle = (origin?: Origin) =>
      whyNotEvicted(pod, place, node, options.clusterArchitectures(), settings, origin);

    const why = obstacle();
    if (why !== undefined) return warn(why);
    const owner = pod.owner?.uid ?? '';
    const limit = limits.check(owner);
    if (limit?.of === 'all') return { outcome: 'waiting', againInMs: limit.waitMs };
    if (limit !== undefined) {
      return warn(
        `${MOST_OF_OWNER} pods of its ${pod.owner?.kind} were evicted within 10 minutes, another eviction would not help`,
        limit.waitMs,
      );
    }
    const object = await evictor.fetch(pod, signal);
    if (object === undefined) return { outcome: 'unchanged' };
    const whyStill = obstacle(readOrigin(object));
    if (whyStill !== undefined) return warn(whyStill);
    const eviction = await evictor.evict(pod, signal);
    switch (eviction.kind) {
      case 'gone':
        return { outcome: 'unchanged' };
      case 'evicted':
        limits.evicted(owner);
        tell('evicted', 'evicted');
        return { outcome: 'written' };
      case 'blocked': {
        tell('blocked', `its eviction is blocked and will be tried again: ${eviction.reason}`);
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
    suspects(key) {
      const pod = pods.get(key);
      const node = nodes.get(pod?.nodeName ?? '');
      if (pod !== undefined && node !== undefined && mayBeWrong(pod, decisionFor(key, pod), nodeArchitecture(node))) {
        return true;
      }
      forget(key);
      return false;
    },
    found: (node) => [...found.keys()].filter((key) => node === undefined || pods.get(key)?.nodeName === node),
    podsOn: (node) => [...pods.keys()].filter((key) => pods.get(key)?.nodeName === node),
    podsOf(daemonSet) {
      const decision = daemonSetStates.get(daemonSet)?.decision;
      if (decision === undefined) looked.delete(daemonSet);
      // Most of its events are of its status: then it is the same decision. The others say nothing of images.
      if (decision === looked.get(daemonSet) || (decision?.kind === 'place' && decision.basis !== 'images')) return [];
      if (decision !== undefined) looked.set(daemonSet, decision);
      return [...pods.keys()].filter((key) => {
        const pod = pods.get(key);
        return pod?.owner?.kind === 'DaemonSet' && `${pod.namespace}/${pod.owner.name}` === daemonSet;
      });
    },
    waitingFor: (image) => waiting.keysFor(image),
  };
}
