import { type JsonObject, objectAt } from '../../kit/json.ts';
import { isDaemonSet, isOfKubernetes, isOtherDaemonSet, shownKind } from '../../placement/objects/kinds.ts';
import { type Owner, readOwner } from '../../placement/objects/pod.ts';
import { type Candidate, readCandidate } from './candidate.ts';

/** A workload as the report counts it. */
export type Unit = Pick<Candidate, 'kind' | 'namespace' | 'name' | 'labels'> & {
  /** One part, or several if an owner that was not read has pods of several kinds. */
  readonly parts: readonly Candidate[];
};

/** Collects objects, and counts what an owner owns once, at the top owner. */
export type Inventory = {
  /**
   * Takes an object in any order; owners first save memory. Returns what is kept of it: undefined for what is counted elsewhere or
   * not at all, and for one more pod like another one.
   */
  add(object: JsonObject): Candidate | undefined;
  /** Returns the workloads, sorted by namespace, kind and name. */
  units(): Unit[];
};

/**
 * The kinds that are counted at their owner. Other kinds may have an owner as well (an operator's custom resource), but people
 * know them by their own name.
 */
const OWNED: ReadonlySet<string> = new Set(['Pod', 'ReplicaSet', 'Job']);
const TEMPLATE_HASH = 'pod-template-hash';

type Family = {
  readonly owner: Owner;
  readonly namespace: string;
  /** As {@link deploymentOf} returns it. */
  readonly deployment: string | undefined;
  readonly parts: Map<string, Candidate>;
};

/** Creates an empty inventory. */
export function createInventory(): Inventory {
  const tops: Candidate[] = [];
  /** The uids of everything that was read. What one of these owns is counted there. */
  const read = new Set<string>();
  /** The Deployments that were read, as {@link deploymentOf} names them. */
  const deployments = new Set<string>();
  const families = new Map<string, Family>();
  const isCounted = ({ uid }: Owner, deployment: string | undefined) =>
    read.has(uid) || (deployment !== undefined && deployments.has(deployment));

  function adopt(owner: Owner, candidate: Candidate): Candidate | undefined {
    const deployment = deploymentOf(owner, candidate);
    if (isCounted(owner, deployment)) return undefined;
    // An old revision of an owner that was not read, such as a Rollout: it wants no pods.
    if (candidate.replicas === 0 && candidate.kind === 'ReplicaSet') return undefined;
    const key = JSON.stringify([owner.uid, owner.kind, candidate.namespace, owner.name]);
    const family = families.get(key) ?? { owner, namespace: candidate.namespace, deployment, parts: new Map() };
    families.set(key, family);
    const part = isDaemonSet(owner) || isOtherDaemonSet(owner) ? anyNode(candidate) : candidate;
    const likeness = likenessOf(part);
    const known = family.parts.get(likeness);
    family.parts.set(likeness, known === undefined ? part : { ...known, replicas: known.replicas + part.replicas });
    return known === undefined ? part : undefined;
  }

  return {
    add(object) {
      // Nearly all pods end here, before anything is made of them.
      if (object.kind === 'Pod' && read.has(readOwner(objectAt(object, 'metadata'))?.uid ?? '')) return undefined;
      const candidate = readCandidate(object);
      if (candidate === undefined) return undefined;
      const { kind, uid, owner } = candidate;
      // A list whose pages expired is read again.
      if (read.has(uid)) return undefined;
      if (uid !== '') read.add(uid);
      if (kind === 'Deployment') deployments.add(`${candidate.namespace}/${candidate.name}`);
      if (owner !== undefined && OWNED.has(kind)) return adopt(owner, candidate);
      tops.push(candidate);
      return candidate;
    },
    units() {
      const own = tops.map((top) => ({ ...named(top), parts: [top] }));
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
          };
        });
      return [...own, ...orphaned].sort(byName);
    },
  };
}

/**
 * Returns the Deployment of a pod whose ReplicaSet may not be read, as `namespace/name`: the Deployment controller names a ReplicaSet
 * after its Deployment and the hash of the template, and labels its pods with that hash. Undefined for other objects.
 */
function deploymentOf(owner: Owner, { kind, namespace, labels }: Candidate): string | undefined {
  const hash = Object.hasOwn(labels, TEMPLATE_HASH) ? labels[TEMPLATE_HASH] : undefined;
  const isOfDeployment =
    kind === 'Pod' && owner.kind === 'ReplicaSet' && isOfKubernetes(owner) && hash && owner.name.endsWith(`-${hash}`);
  return isOfDeployment ? `${namespace}/${owner.name.slice(0, -hash.length - 1)}` : undefined;
}

function named({ kind, namespace, name, labels }: Candidate) {
  return { kind, namespace, name, labels };
}

function byName(one: Unit, other: Unit): number {
  const [a, b] = [one, other].map(({ namespace, kind, name }) => [namespace, kind, name]);
  for (const [index, text] of (a ?? []).entries()) {
    const against = b?.[index] ?? '';
    if (text !== against) return text < against ? -1 : 1;
  }
  return 0;
}

/** A daemon pod names its node in its affinity. The DaemonSet's template does not. */
function anyNode(candidate: Candidate): Candidate {
  const { demands } = candidate;
  const terms = demands.terms
    ?.map(({ expressions }) => ({ expressions, fields: [] }))
    .filter(({ expressions }) => expressions.length > 0);
  return { ...candidate, demands: { ...demands, terms: terms?.length === 0 ? undefined : terms } };
}

/** Returns a text that is the same for pods that get the same verdicts and request the same. */
function likenessOf({ template, demands, requests, users, spread }: Candidate): string {
  const { statement, os, hasRuntimeClass, images, pullSecrets, serviceAccountName, priorityClassName } = template;
  const parts = [statement, os, hasRuntimeClass, images, pullSecrets, serviceAccountName, priorityClassName];
  return JSON.stringify([...parts, template.labels, demands, requests, users, spread]);
}
