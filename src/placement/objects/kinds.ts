import { cut } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { readDemands } from '../fit.ts';

/** The object that controls a pod (`metadata.ownerReferences` with `controller: true`). */
export type Owner = { readonly kind: string; readonly apiVersion: string; readonly name: string; readonly uid: string };

/** The name of an object of the cluster or of a file. */
export type NamedObject = { readonly kind: string; readonly namespace?: string; readonly name: string };

/** Returns the name of an object; without a namespace if that is empty or undefined. */
export function objectName({
  kind,
  namespace,
  name,
}: Omit<NamedObject, 'namespace'> & { readonly namespace?: string | undefined }): NamedObject {
  return { kind, ...(namespace ? { namespace } : {}), name };
}

/** The API groups of Kubernetes' own kinds that create pods. Other groups have kinds of the same names, such as OpenKruise's. */
const GROUPS: Readonly<Record<string, string>> = {
  Pod: '',
  ReplicationController: '',
  Deployment: 'apps',
  ReplicaSet: 'apps',
  StatefulSet: 'apps',
  DaemonSet: 'apps',
  Job: 'batch',
  CronJob: 'batch',
};

type Typed = Pick<Owner, 'kind' | 'apiVersion'>;

/** Whether this is Kubernetes' own kind of that name. An object in a list of its kind has no `apiVersion`, and counts as such. */
export function isOfKubernetes({ kind, apiVersion }: Typed): boolean {
  return apiVersion === '' || (Object.hasOwn(GROUPS, kind) && groupOf(apiVersion) === GROUPS[kind]);
}

/**
 * Returns the name under which a kind is shown: with its API group, as kubectl writes it (`DaemonSet.apps.kruise.io`), where
 * Kubernetes has another kind of this name.
 */
export function shownKind({ kind, apiVersion }: Typed): string {
  const isAmbiguous = Object.hasOwn(GROUPS, kind) && !isOfKubernetes({ kind, apiVersion });
  return isAmbiguous ? `${kind}.${groupOf(apiVersion)}` : kind;
}

/** Whether a kind, as {@link shownKind} names it, is a DaemonSet of any API group. Its pods get no affinity. */
export function isDaemonSetOfAnyGroup(kind: string): boolean {
  return kind === 'DaemonSet' || kind.startsWith('DaemonSet.');
}

/** Whether an owner is a DaemonSet of Kubernetes itself, whose template archaware serves. */
export function isDaemonSet(owner: Typed | undefined): owner is Owner {
  return owner?.kind === 'DaemonSet' && isOfKubernetes(owner);
}

/** Returns how a pod is replaced by a new one. A Job counts a deleted pod as failed, so that it may not create another. */
export function replaceAdvice(owner: Typed | undefined): string {
  if (owner === undefined) return 'create the pod again';
  if (owner.kind === 'Job') return 'create its Job again';
  return `delete the pod, so that its ${owner.kind} creates another`;
}

/**
 * Whether an owner is another kind of DaemonSet (`apps.kruise.io`, ExtendedDaemonSetReplicaSet): it judges a node's taints by a
 * template that archaware does not serve, before it creates the pod for that node.
 */
export function isOtherDaemonSet(owner: Typed | undefined): owner is Owner {
  return owner?.kind.includes('DaemonSet') === true && !isOfKubernetes(owner);
}

/**
 * Whether a controller made a pod with this spec for one node: a DaemonSet of any API group, or the owner of another kind whose
 * pods name their node. Such a pod goes to that node or to none, so affinity cannot help it, and the node may need it before
 * a registry can be reached, so a gate could hold up both.
 */
export function isForOneNode(owner: Typed | undefined, spec: JsonObject): boolean {
  if (owner === undefined) return false;
  if (isDaemonSet(owner) || isOtherDaemonSet(owner)) return true;
  return !isOfKubernetes(owner) && namesOneNode(spec);
}

/** Whether required node affinity names one node, as a DaemonSet's controller writes it: `matchFields` on `metadata.name`. */
function namesOneNode(spec: JsonObject): boolean {
  const { terms = [] } = readDemands(spec);
  const namesOne = ({ fields }: (typeof terms)[number]) =>
    fields.some(({ key, operator, values }) => key === 'metadata.name' && operator === 'In' && values.length === 1);
  return terms.length > 0 && terms.every(namesOne);
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.lastIndexOf('/');
  return slash === -1 ? '' : apiVersion.slice(0, slash);
}

/**
 * The longest name of an object, and one character: the API server does not limit what an owner reference says, and a text that was
 * cut stays invalid.
 */
const LONGEST_NAME = 254;

/** Returns the owner that controls an object, if it has one. */
export function readOwner(metadata: JsonObject): Owner | undefined {
  const reference = (listAt(metadata, 'ownerReferences') ?? []).find((owner) => owner.controller === true);
  const at = (field: keyof Owner) => cut(stringAt(reference ?? {}, field) ?? '', LONGEST_NAME);
  return reference && { kind: at('kind'), apiVersion: at('apiVersion'), name: at('name'), uid: at('uid') };
}

/** The path to the pod template in each kind. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  Pod: [],
  Deployment: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};

/** Returns the template of the pods that an object makes, and a pod itself. `kind`: one of {@link WORKLOAD_KINDS}. */
export function templateIn(kind: string, object: JsonObject): JsonObject {
  return (TEMPLATES[kind] ?? []).reduce(objectAt, object);
}

/** The kinds that can be read. */
export const WORKLOAD_KINDS: readonly string[] = Object.keys(TEMPLATES);
