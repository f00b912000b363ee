import type { Clock } from '../kit/clock.ts';
import { cut } from '../kit/cut.ts';
import { inTurns, type Turns } from '../kit/fairness/event-loop.ts';
import { isArchitecture } from '../kit/platform.ts';
import type { Store } from '../kube/watch/collection.ts';
import type { ReadinessSamples } from '../observability/metrics.ts';
import { settingsFor, skipDaemonSet } from '../placement/eligibility.ts';
import { onlySchedulable } from '../placement/images.ts';
import { architecturesOf, type Node, nodeArchitecture } from '../placement/nodes/node.ts';
import { withoutOurs } from '../placement/objects/asked-platform.ts';
import { hasEnded } from '../placement/objects/containers.ts';
import type { DaemonSet } from '../placement/objects/daemonset.ts';
import type { Namespace } from '../placement/objects/namespace.ts';
import type { Pod } from '../placement/objects/pod.ts';
import { createPins } from '../placement/readiness/places.ts';
import { assessSubject, verdictOf } from '../placement/readiness/target-verdict.ts';
import type { Settings } from '../placement/settings.ts';
import { readPodSubject } from '../placement/subject.ts';
import { type ImageSource, NEVER } from './image-source.ts';

/** Namespaces and images are as many as tenants like, and each is a series. */
const MOST_NAMESPACES = 100;
const MOST_IMAGES = 20;
/** The longest name of an image that is valid; the author of a pod may write a longer one. */
const LONGEST_IMAGE = 500;
/** How long the counts are good for: anybody who reaches the port may ask for them. */
const AGAIN_MS = 15_000;
/** And so many times as long as counting took, because tenants choose how many different pods there are. */
const SHARE = 50;

type ReadinessOptions = {
  readonly pods: Store<Pod>;
  readonly nodes: Store<Node>;
  readonly daemonSets: Store<DaemonSet>;
  readonly namespaces: Store<Namespace>;
  readonly settings: () => Settings;
  readonly images: ImageSource;
  /** Empty: the architectures of the nodes, within `architectures.schedulable`. */
  readonly targets: readonly string[];
  readonly clock: Pick<Clock, 'monotonic'>;
};

/** Pods that are alike: one workload's, of one revision. */
type PodGroup = { readonly example: Pod; readonly byArchitecture: Map<string, number> };

/**
 * Creates what counts how far the cluster's pods are for each target, by the rules of `report`. It goes by memory alone: it looks nothing
 * up, and counts again at most every 15 seconds.
 */
export function createReadiness(options: ReadinessOptions): (turns: Turns) => Promise<ReadinessSamples> {
  const { monotonic } = options.clock;
  let last: Promise<ReadinessSamples> | undefined;
  let goodUntil = Number.NEGATIVE_INFINITY;
  return (turns) => {
    const now = monotonic();
    if (last !== undefined && now < goodUntil) return last;
    goodUntil = Number.POSITIVE_INFINITY;
    last = count(options, turns).finally(() => {
      goodUntil = now + Math.max(AGAIN_MS, SHARE * (monotonic() - now));
    });
    return last;
  };
}

async function count(options: ReadinessOptions, turns: Turns): Promise<ReadinessSamples> {
  const { pods, nodes, settings } = options;
  const groups = new Map<string, PodGroup[]>();
  await inTurns(turns, pods.values(), (pod) => collect(groups, pod, nodes));
  const own = architecturesOf(nodes.values());
  const targets = options.targets.length > 0 ? options.targets : onlySchedulable(own, settings());
  const judge = createJudge(options, targets, [...new Set([...own, ...targets])].sort());
  const all = [...groups.values()].flat();
  const largest = largestNamespaces(all);
  const counts = new Map<string, ReadinessSamples['pods'][number] & { pods: number; cpu: number; memory: number }>();
  const blocked = new Map<string, { target: string; image: string; cpu: number }>();
  await inTurns(turns, all, ({ example, byArchitecture }) => {
    const namespace = largest.has(example.namespace) ? example.namespace : 'other';
    for (const { target, state, images } of judge(example)) {
      let cores = 0;
      for (const [architecture, many] of byArchitecture) {
        const key = JSON.stringify([target, namespace, state, architecture]);
        const sum = counts.get(key) ?? { target, namespace, state, architecture, pods: 0, cpu: 0, memory: 0 };
        counts.set(key, sum);
        sum.pods += many;
        sum.cpu += many * example.requests.cpu;
        sum.memory += many * example.requests.memory;
        cores += many * example.requests.cpu;
      }
      for (const image of images.map((name) => cut(name, LONGEST_IMAGE))) {
        const key = JSON.stringify([target, image]);
        blocked.set(key, { target, image, cpu: (blocked.get(key)?.cpu ?? 0) + cores });
      }
    }
  });
  const images = targets.flatMap((target) =>
    [...blocked.values()]
      .filter((each) => each.target === target)
      .sort((one, other) => other.cpu - one.cpu)
      .slice(0, MOST_IMAGES),
  );
  return { pods: [...counts.values()], images };
}

function collect(groups: Map<string, PodGroup[]>, pod: Pod, nodes: Store<Node>): void {
  if (pod.deleting || pod.mirror || hasEnded(pod.phase)) return;
  const key = pod.owner?.uid ?? pod.uid;
  const known = groups.get(key) ?? [];
  groups.set(key, known);
  let group = known.find(({ example }) => isAlike(example, pod));
  if (group === undefined) {
    group = { example: pod, byArchitecture: new Map() };
    known.push(group);
  }
  const architecture = architectureOf(pod.nodeName, nodes);
  group.byArchitecture.set(architecture, (group.byArchitecture.get(architecture) ?? 0) + 1);
}

/** Equal values of stored pods are one object, so that this compares no content. */
function isAlike(one: Pod, other: Pod): boolean {
  return (
    one.images === other.images &&
    one.requests === other.requests &&
    one.selects === other.selects &&
    one.tolerations === other.tolerations &&
    one.labels === other.labels &&
    one.statement === other.statement &&
    one.written?.architectures?.join() === other.written?.architectures?.join()
  );
}

function architectureOf(nodeName: string | undefined, nodes: Store<Node>): string {
  if (nodeName === undefined) return 'none';
  const node = nodes.get(nodeName);
  return labelOf(node && nodeArchitecture(node));
}

/** Returns what stands for an architecture of a node: a kubelet may report what it likes, and each value is a series. */
export function labelOf(architecture: string | undefined): string {
  if (architecture === undefined) return 'unknown';
  return isArchitecture(architecture) ? architecture : 'other';
}

function largestNamespaces(groups: readonly PodGroup[]): ReadonlySet<string> {
  const sums = new Map<string, { cpu: number; pods: number }>();
  for (const { example, byArchitecture } of groups) {
    const sum = sums.get(example.namespace) ?? { cpu: 0, pods: 0 };
    for (const many of byArchitecture.values()) {
      sum.cpu += many * example.requests.cpu;
      sum.pods += many;
    }
    sums.set(example.namespace, sum);
  }
  const bySize = [...sums].sort(([, one], [, other]) => other.cpu - one.cpu || other.pods - one.pods);
  return new Set(bySize.slice(0, MOST_NAMESPACES).map(([name]) => name));
}

/** A daemon pod is decided by its DaemonSet. Where the watch does not show that one yet, the pod stands for it. */
function templateOf(pod: Pod, daemonSets: Store<DaemonSet>): Pick<DaemonSet, 'deleting' | 'labels' | 'template'> {
  const found = daemonSets.get(`${pod.namespace}/${pod.owner?.name}`);
  return found ?? { deleting: false, labels: pod.labels, template: pod };
}

/** Returns what says in which state a pod is for each target, and which images block it. */
function createJudge(
  { nodes, daemonSets, namespaces, settings, images }: ReadinessOptions,
  targets: readonly string[],
  clusterArchitectures: readonly string[],
) {
  const pinsOf = createPins([...nodes.values()], settings());
  return (pod: Pod): { target: string; state: string; images: readonly string[] }[] => {
    const namespace = namespaces.get(pod.namespace);
    if (namespace === undefined) return [];
    const own = settingsFor(settings(), { namespace, labels: pod.labels });
    const subject = readPodSubject(pod, namespace, own);
    const assessment = assessSubject(
      subject,
      own,
      {
        clusterArchitectures,
        namesOf: images.namesOf,
        answerOf: (image) => images.answer(image, pod.namespace, pod.pullSecrets, NEVER),
        waitedMs: Number.POSITIVE_INFINITY,
      },
      subject.skipped === 'daemon-pod' ? skipDaemonSet(templateOf(pod, daemonSets), namespace, own) : subject.skipped,
    );
    const asked = { nodeName: undefined, nodeSelector: {}, terms: undefined, ...pod.selects };
    const demands = { ...asked, tolerations: pod.tolerations ?? [] };
    const authored = pod.written?.architectures === undefined ? demands : withoutOurs(demands);
    const judged = { kind: 'Pod', owner: pod.owner, template: pod, demands: authored, users: [] };
    return targets.map((target) => {
      const { state, reasons } = verdictOf(judged, assessment, target, pinsOf);
      const blocking = reasons.flatMap((reason) => (reason.kind === 'image' ? reason.image : []));
      return { target, state: state === 'missing' ? 'blocked' : state, images: blocking };
    });
  };
}
