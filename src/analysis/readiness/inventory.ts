import { strangersText } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';
import { termsOfAnyNode } from '../../placement/fit.ts';
import { hasEnded } from '../../placement/objects/containers.ts';
import { isDaemonSet, isOtherDaemonSet, type Owner, readOwner, shownKind } from '../../placement/objects/kinds.ts';
import type { PodTemplate } from '../../placement/objects/pod.ts';
import { deploymentOf } from '../workloads/overview.ts';
import { type Candidate, readCandidate } from './assess.ts';
import type { PodWithoutNode } from './report.ts';

/** A workload as the report counts it. */
export type Unit = Pick<Candidate, 'kind' | 'namespace' | 'name' | 'labels'> & {
  /** One part, or several if an owner that was not read has pods of several kinds. */
  readonly parts: readonly Candidate[];
  /** How many of its pods run on which node. */
  readonly runsOn: ReadonlyMap<string, number>;
};

/** Collects objects, and counts what an owner owns once, at the top owner. */
export type Inventory = ReturnType<typeof createInventory>;

/**
 * The kinds that are counted at their owner. Other kinds may have an owner as well (an operator's custom resource), but people
 * know them by their own name.
 */
const OWNED: ReadonlySet<string> = new Set(['Pod', 'ReplicaSet', 'Job']);
/** The most pods without a node that are named: each has what the scheduler says of it. */
export const MOST_WITHOUT_NODE = 1_000;

type Family = {
  readonly owner: Owner;
  readonly namespace: string;
  /** `namespace/name` of the Deployment that {@link deploymentOf} returns. */
  readonly deployment: string | undefined;
  readonly parts: Map<string, Candidate>;
};

/** Creates an empty inventory. */
export function createInventory() {
  const tops: Candidate[] = [];
  /** The uids of everything that was read. What one of these owns is counted there. */
  const read = new Set<string>();
  /** The uids of the Deployments that were read, by `namespace/name`. */
  const deployments = new Map<string, string>();
  const placed = createPlaced();
  const families = new Map<string, Family>();
  const isCounted = ({ uid }: Owner, deployment: string | undefined) =>
    read.has(uid) || (deployment !== undefined && deployments.has(deployment));

  function adopt(owner: Owner, candidate: Candidate): void {
    const name = candidate.kind === 'Pod' ? deploymentOf(owner, candidate.labels) : undefined;
    const deployment = name && `${candidate.namespace}/${name}`;
    placed.belongs(owner.uid, deployments.get(deployment ?? ''));
    if (isCounted(owner, deployment)) return;
    // An old revision of an owner that was not read, such as a Rollout: it wants no pods.
    if (candidate.replicas === 0 && candidate.kind === 'ReplicaSet') return;
    const key = JSON.stringify([owner.uid, owner.kind, candidate.namespace, owner.name]);
    const family = families.get(key) ?? { owner, namespace: candidate.namespace, deployment, parts: new Map() };
    families.set(key, family);
    const part = isDaemonSet(owner) || isOtherDaemonSet(owner) ? anyNode(candidate) : candidate;
    const likeness = likenessOf(part);
    const known = family.parts.get(likeness);
    family.parts.set(likeness, known === undefined ? part : { ...known, replicas: known.replicas + part.replicas });
  }

  return {
    /** Takes an object in any order; owners first save memory. */
    add(object: JsonObject): void {
      // Nearly all pods end here, before anything is made of them.
      const readFrom = object.kind === 'Pod' ? readOwner(objectAt(object, 'metadata'))?.uid : undefined;
      placed.add(object, readFrom);
      if (readFrom !== undefined && read.has(readFrom)) return;
      const candidate = readCandidate(object);
      if (candidate === undefined) return;
      const { kind, uid, owner } = candidate;
      // A list whose pages expired is read again.
      if (read.has(uid)) return;
      if (uid !== '') read.add(uid);
      if (kind === 'Deployment') deployments.set(`${candidate.namespace}/${candidate.name}`, uid);
      if (kind !== 'Pod') placed.belongs(uid, owner?.uid);
      if (owner !== undefined && OWNED.has(kind)) adopt(owner, candidate);
      else tops.push(candidate);
    },
    /** Returns the pods that wait for a node, those that wait longest first. */
    waiting: placed.waiting,
    /** Returns the workloads, sorted by namespace, kind and name. */
    units(): Unit[] {
      const runsOn = placed.byWorkload();
      const own = tops.map((top) => ({ ...named(top), parts: [top], runsOn: runsOn(top.uid) }));
      const orphaned = [...families.values()]
        .filter(({ owner, deployment }) => !isCounted(owner, deployment))
        .map(({ owner, namespace, parts }) => {
          const [first] = parts.values();
          return {
            kind: shownKind(owner),
            namespace,
            name: owner.name,
            labels: first?.labels ?? {},
            parts: [...parts.values()],
            runsOn: runsOn(owner.uid),
          };
        });
      return [...own, ...orphaned].sort(byName);
    },
  };
}

/** Counts the pods that run, by node, and says of which workload they are. */
function createPlaced() {
  const byOwner = new Map<string, Map<string, number>>();
  const parents = new Map<string, string>();
  const waiting: PodWithoutNode[] = [];
  const counted = new Set<string>();

  function root(uid: string): string {
    let top = uid;
    // A circle of owners would be a mistake of somebody else.
    for (let steps = 0, next = parents.get(top); next !== undefined && steps < 8; steps++, next = parents.get(top))
      top = next;
    return top;
  }

  return {
    /** Counts a pod that runs; `owner`: the uid of its owner. */
    add(object: JsonObject, owner: string | undefined): void {
      if (object.kind !== 'Pod' || hasEnded(objectAt(object, 'status').phase)) return;
      const own = stringAt(objectAt(object, 'metadata'), 'uid') ?? '';
      // A page that broke off is sent again.
      if (own !== '' && counted.has(own)) return;
      counted.add(own);
      const node = stringAt(objectAt(object, 'spec'), 'nodeName');
      if (node === undefined) {
        if (waiting.length < MOST_WITHOUT_NODE) waiting.push(readWaiting(object));
        return;
      }
      const uid = owner ?? own;
      const nodes = byOwner.get(uid) ?? new Map<string, number>();
      byOwner.set(uid, nodes.set(node, (nodes.get(node) ?? 0) + 1));
    },
    /** The object with the first uid is counted at the one with the second. */
    belongs(uid: string, owner: string | undefined): void {
      if (owner !== undefined && owner !== uid) parents.set(uid, owner);
    },
    waiting: () => waiting.sort((one, other) => (one.since < other.since ? -1 : 1)),
    /** Returns, by the uid of a workload, how many of its pods run on which node. */
    byWorkload(): (uid: string) => ReadonlyMap<string, number> {
      const found = new Map<string, Map<string, number>>();
      for (const [uid, nodes] of byOwner) {
        const sum = found.get(root(uid)) ?? new Map<string, number>();
        for (const [node, count] of nodes) sum.set(node, (sum.get(node) ?? 0) + count);
        found.set(root(uid), sum);
      }
      return (uid) => found.get(uid) ?? new Map();
    },
  };
}

/** Reads why a pod waits: the gate that archaware holds it by, or what the scheduler says. */
function readWaiting(object: JsonObject): PodWithoutNode {
  const [metadata, spec] = [objectAt(object, 'metadata'), objectAt(object, 'spec')];
  const isGated = listAt(spec, 'schedulingGates')?.some(({ name }) => name === ARCHITECTURE_GATE) === true;
  const conditions = listAt(objectAt(object, 'status'), 'conditions') ?? [];
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  const said = strangersText((scheduled && stringAt(scheduled, 'message')) ?? '');
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    since: stringAt(metadata, 'creationTimestamp') ?? '',
    why: isGated ? 'archaware holds it until it knows where its images run' : said,
  };
}

function named({ kind, namespace, name, labels }: Candidate) {
  return { kind, namespace, name, labels };
}

function byName(one: Unit, other: Unit): number {
  // No name has a NUL, so a longer one never changes the order of what follows it.
  const keyOf = ({ namespace, kind, name }: Unit) => [namespace, kind, name].join('\0');
  return keyOf(one) < keyOf(other) ? -1 : 1;
}

/** A daemon pod names its node in its affinity. The DaemonSet's template does not. */
function anyNode(candidate: Candidate): Candidate {
  const { demands } = candidate;
  return { ...candidate, demands: { ...demands, terms: termsOfAnyNode(demands.terms) } };
}

/** Returns a text that is the same for pods that get the same verdicts and request the same. */
function likenessOf({ template, demands, requests, users, spread }: Candidate): string {
  const { labels, statement, runtime, images, pullSecrets, serviceAccountName, priorityClassName } = template;
  const own: Readonly<Record<keyof PodTemplate, unknown>> = {
    ...{ labels, statement, runtime, images, pullSecrets, serviceAccountName, priorityClassName },
    // They are in the demands, less what binds a daemon pod to its node. What is too large is likened by what was read of it.
    ...{ tolerations: undefined, asked: undefined, tooLarge: undefined },
  };
  return JSON.stringify([own, demands, requests, users, spread]);
}
