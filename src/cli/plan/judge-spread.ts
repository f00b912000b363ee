import type { Watches } from '../../controllers/watches.ts';
import { type JsonObject, objectAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { find } from '../../kube/read.ts';
import { withoutOurs } from '../../placement/asked.ts';
import type { Decision } from '../../placement/decide.ts';
import { isLeftAlone, type SkipReason } from '../../placement/eligibility.ts';
import { type Demands, readDemands } from '../../placement/fit.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Settings } from '../../placement/settings.ts';
import { type HardSpread, readHardSpread } from '../../placement/spread/constraint.ts';
import { createSpreadLimits, type OtherPod, type SpreadPod } from '../../placement/spread/limit.ts';
import { lastingNodes } from '../../placement/spread/nodes.ts';
import { rollsAhead, spreadPod } from '../../placement/spread/pod.ts';
import type { SpreadSurroundings } from '../../placement/workloads/crowd.ts';
import {
  type JudgedWorkload,
  overviewOf,
  type Subject,
  type Surroundings,
} from '../../placement/workloads/overview.ts';
import { type WorkloadName, workloadOf } from '../../placement/workloads/owner.ts';

/** Keeps what the topology spread of pods needs; nearly no pod has any. */
export type SpreadReader = {
  read(object: JsonObject, pod: Pod): void;
  /** Returns a pod as the scheduler will see it; undefined if no hard constraint concerns it. */
  of(
    pod: Pod,
    decision: Decision | { readonly kind: 'skip'; readonly reason: SkipReason },
    settings: Settings,
  ): SpreadPod | undefined;
};

/** Creates a reader that has read nothing. */
export function createSpreadReader(): SpreadReader {
  const kept = new Map<string, { readonly constraints: readonly HardSpread[]; readonly demands: Demands }>();
  return {
    read(object, pod) {
      const spec = objectAt(object, 'spec');
      const constraints = readHardSpread(spec, pod.labels);
      // A pod of a DaemonSet names its node, so no other node counts.
      if (constraints.length === 0 || pod.owner?.kind === 'DaemonSet') return;
      const demands = { ...readDemands(spec), nodeName: undefined };
      kept.set(pod.uid, {
        constraints,
        demands: pod.written?.architectures === undefined ? demands : withoutOurs(demands),
      });
    },
    of(pod, decision, settings) {
      const known = kept.get(pod.uid);
      const isAlone = decision.kind === 'skip' && isLeftAlone(decision.reason);
      if (known === undefined || !(isAlone || decision.kind === 'place')) return undefined;
      const placement = decision.kind === 'place' ? decision : undefined;
      return spreadPod({ template: pod, ...known }, placement, settings);
    },
  };
}

/** Returns what the cluster does to topology spread constraints, as long as it is not known how Deployments roll. */
export function spreadSurroundings(
  { nodes, pods }: Pick<Watches, 'nodes' | 'pods'>,
  settings: Settings,
): SpreadSurroundings {
  let bound: ReadonlyMap<string, readonly (OtherPod & { readonly of: string })[]> | undefined;
  return {
    limitOf: createSpreadLimits(lastingNodes(nodes.store.values(), settings), settings.taints),
    othersOf(workload) {
      bound ??= boundPods(pods.store.values());
      return (bound.get(workload.namespace) ?? []).filter(({ of }) => of !== keyOf(workload));
    },
    rollsAhead: () => false,
  };
}

/** The pods that the scheduler counts, by their namespace: it leaves out those that end, and never sees those that have finished. */
function boundPods(pods: Iterable<Pod>): ReadonlyMap<string, readonly (OtherPod & { readonly of: string })[]> {
  const found = new Map<string, (OtherPod & { readonly of: string })[]>();
  for (const pod of pods) {
    const { nodeName, labels, namespace, deleting, phase } = pod;
    if (nodeName === undefined || deleting || phase === 'Succeeded' || phase === 'Failed') continue;
    const list = found.get(namespace) ?? [];
    found.set(namespace, list);
    list.push({ labels, nodeName, of: keyOf(workloadOf(pod)) });
  }
  return found;
}

function keyOf({ kind, namespace, name }: WorkloadName): string {
  return `${kind} ${namespace}/${name}`;
}

/** How many Deployments are read at most: those that have exactly as many pods as a constraint lets run. */
const MOST_READ = 200;

/**
 * Judges workloads, and reads the Deployments that have exactly as many pods as a constraint lets run: only they say whether their
 * next rollout would get stuck.
 */
export async function judgeSpread(
  subjects: () => Iterable<Subject>,
  surroundings: Surroundings & { readonly spread: SpreadSurroundings },
  { client, signal }: { readonly client: ApiClient; readonly signal: AbortSignal },
): Promise<JudgedWorkload[]> {
  const judged = (rollsAhead: SpreadSurroundings['rollsAhead']) =>
    overviewOf(subjects(), { ...surroundings, spread: { ...surroundings.spread, rollsAhead } });
  const full: WorkloadName[] = [];
  const workloads = judged((workload) => {
    full.push(workload);
    return false;
  });
  return full.length === 0 ? workloads : judged(await readRollouts(client, full, signal));
}

/**
 * Reads Deployments, and returns whether their rollouts start a new pod before they stop an old one. One that may not be read counts
 * as one with the default strategy: the account of the controller, with which `plan` runs in its pod, may read none.
 */
async function readRollouts(
  client: ApiClient,
  deployments: readonly WorkloadName[],
  signal: AbortSignal,
): Promise<SpreadSurroundings['rollsAhead']> {
  const specs = new Map<string, JsonObject>();
  for (const workload of deployments.slice(0, MOST_READ)) {
    const [namespace, name] = [workload.namespace, workload.name].map(encodeURIComponent);
    try {
      const object = await find(client, `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`, signal);
      if (object !== undefined) specs.set(keyOf(workload), objectAt(object, 'spec'));
    } catch (error) {
      if (!isForbidden(error)) throw error;
      break;
    }
  }
  return (workload, pods) => rollsAhead('Deployment', specs.get(keyOf(workload)) ?? {}, pods);
}
