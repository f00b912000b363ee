import { createShared } from '../kit/fairness/equal-values.ts';
import type { JsonObject } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isForbidden } from '../kube/errors.ts';
import { find, readAll } from '../kube/read.ts';
import {
  GUARD_POLICY,
  KNOWN_IMAGES,
  knownImagesPath,
  PLACE_DAEMONSETS_POLICY,
  PLACE_POLICY,
  POD_GUARD_POLICY,
  WEBHOOK_CONFIGURATION,
  WEBHOOK_SECRET,
} from '../names.ts';
import { cleanNode } from '../placement/nodes/decide-node.ts';
import { hasOurForm, readManaged } from '../placement/nodes/managed.ts';
import { type Node, nodeArchitecture, readNode, taintKind } from '../placement/nodes/node.ts';
import { type DaemonSet, readDaemonSet } from '../placement/objects/daemonset.ts';
import type { NamedObject, Owner } from '../placement/objects/kinds.ts';
import { type Namespace, readNamespace } from '../placement/objects/namespace.ts';
import { readPod } from '../placement/objects/pod.ts';
import { readPodRecord } from '../placement/objects/pod-record.ts';
import { everAdded, readRecord } from '../placement/objects/template-record.ts';
import type { Settings } from '../placement/settings.ts';
import {
  type CleanedCluster,
  cleanPod,
  cleanTemplate,
  type PodCleaning,
  type RestoredDaemonSet,
  whyLeftInTemplate,
} from './cleaned.ts';
import type { Left } from './outcomes.ts';

/** The options for the search for archaware's traces. */
export type LookOptions = {
  readonly client: ApiClient;
  readonly taints: Settings['taints'];
  /** Whether there may be a webhook of archaware. If not, a missing right to look for one counts as "there is none". */
  readonly webhook: boolean;
  /** The same for the Secret with self-signed certificates. */
  readonly ownCertificates: boolean;
  /** The namespace of that Secret, which is the one of the Lease. */
  readonly namespace: string;
  readonly signal: AbortSignal;
};

/** An object that belongs to archaware as a whole. */
export type OwnObject = NamedObject & { readonly path: string };

/** The name of a pod that needs no further decision. */
export type PodName = { readonly namespace: string; readonly name: string };

/** A pod that has archaware's tolerations or affinity, and what can be done about it. There may be 100,000 of them. */
export type CarryingPod = PodName & {
  readonly kind: 'Pod';
  readonly uid: string;
  readonly owner: Owner | undefined;
  readonly cleaning: Exclude<PodCleaning, { kind: 'none' }>;
};

/** The traces of archaware in the cluster. */
export type TraceInventory = {
  readonly configurations: readonly OwnObject[];
  /** `gated`: pods with archaware's gate. `recorded`: pods that stay, and have admission's record. */
  readonly gated: readonly PodName[];
  readonly recorded: readonly PodName[];
  readonly nodes: readonly Node[];
  readonly daemonSets: readonly DaemonSet[];
  /** The DaemonSets that keep tolerations of archaware's form, because nothing shows that archaware wrote them. */
  readonly unrecorded: readonly Left[];
  /** The DaemonSets in whose `managedFields` archaware has an entry. */
  readonly owned: readonly DaemonSet[];
  /** The pods that have archaware's tolerations or affinity, judged by their templates as these will be once restored. */
  readonly pods: readonly CarryingPod[];
  readonly nodeUids: ReadonlySet<string>;
  /** The namespaces with a report of archaware. */
  readonly reports: readonly Namespace[];
};

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
/** The binding comes first: a policy without its binding does nothing. */
const POLICIES: readonly OwnObject[] = [GUARD_POLICY, POD_GUARD_POLICY, PLACE_POLICY, PLACE_DAEMONSETS_POLICY].flatMap(
  (name) =>
    [
      { kind: 'MutatingAdmissionPolicyBinding', plural: 'mutatingadmissionpolicybindings' },
      { kind: 'MutatingAdmissionPolicy', plural: 'mutatingadmissionpolicies' },
    ].map(({ kind, plural }) => ({ kind, name, path: `${ADMISSION}/${plural}/${name}` })),
);
/** Whether an object puts back tolerations that somebody drops; not those that `clean` removes. */
export function keepsTolerations({ name }: OwnObject): boolean {
  return name === GUARD_POLICY || name === POD_GUARD_POLICY;
}

const WEBHOOK: OwnObject = {
  kind: 'MutatingWebhookConfiguration',
  name: WEBHOOK_CONFIGURATION,
  path: `${ADMISSION}/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`,
};
/** The owners of some 30,000 pods, in bytes. */
const MOST_SHARED = 16 * 1024 * 1024;

/**
 * Searches the cluster for archaware's traces. `known`: pods of an earlier search; unchanged ones are returned as the same objects,
 * to save memory. Throws the errors of the client.
 */
export async function takeInventory(options: LookOptions, known: readonly CarryingPod[] = []): Promise<TraceInventory> {
  const { client, taints, signal } = options;
  const configurations = [];
  for (const [object, mayBeThere] of ownObjects(options)) {
    if (await exists(options, object.path, mayBeThere)) configurations.push(object);
  }
  const nodes = await readAll(client, '/api/v1/nodes', readNode, signal);
  const daemonSets = await readAll(client, '/apis/apps/v1/daemonsets', readDaemonSet, signal);
  const cluster: CleanedCluster = {
    keys: taintsEver(taints, nodes, daemonSets),
    daemonSetOf: byUid(daemonSets, taints),
    architectures: [...new Set(nodes.flatMap((node) => (node.deleting ? [] : (nodeArchitecture(node) ?? []))))].sort(),
  };
  return {
    configurations,
    nodes: nodes.filter((node) => cleanNode(node, taints).kind === 'set'),
    nodeUids: new Set(nodes.map(({ uid }) => uid)),
    reports: await readAll(client, '/api/v1/namespaces', reported, signal),
    daemonSets: daemonSets.filter((daemonSet) => cleanTemplate(daemonSet, taints).kind === 'set'),
    unrecorded: daemonSets.flatMap((daemonSet) => {
      const { namespace, name } = daemonSet;
      const reason = whyLeftInTemplate(daemonSet, taints);
      return reason === undefined ? [] : { kind: 'DaemonSet' as const, namespace, name, reason };
    }),
    owned: daemonSets.filter(({ entry }) => entry !== undefined),
    ...(await takePods(options, cluster, known)),
  };
}

function reported(object: JsonObject): Namespace | undefined {
  const namespace = readNamespace(object);
  return namespace.report === undefined ? undefined : namespace;
}

/** Returns every taint that archaware set or may have set, as `key:effect`. */
function taintsEver(taints: Settings['taints'], nodes: readonly Node[], daemonSets: readonly DaemonSet[]) {
  const recorded = [
    taints,
    ...nodes.flatMap(({ managed }) => readManaged(managed).taints.filter(hasOurForm)),
    ...daemonSets.flatMap(({ recorded }) => everAdded(readRecord(recorded))),
  ];
  return new Set(recorded.map(taintKind));
}

type Traces = { readonly pod: PodName | CarryingPod; readonly gated: boolean; readonly recorded: boolean };

async function takePods(
  { client, signal }: LookOptions,
  cluster: CleanedCluster,
  known: readonly CarryingPod[],
): Promise<Pick<TraceInventory, 'gated' | 'recorded' | 'pods'>> {
  // Each page of a list is parsed separately, so pods share nothing.
  const share = createShared(MOST_SHARED);
  const before = new Map(known.map((pod) => [pod.uid, pod]));
  const read = (object: JsonObject): Traces | undefined => {
    const pod = readPod(object);
    const { uid, owner } = pod;
    const name = { namespace: share(pod.namespace), name: pod.name };
    const gated = pod.gated !== undefined;
    const cleaning = cleanPod(object, cluster, pod);
    const managed = readPodRecord(object);
    const recorded = managed !== undefined && (cleaning.kind === 'keep' || managed.tolerations.length === 0);
    if (cleaning.kind === 'none') return gated || recorded ? { pod: name, gated, recorded } : undefined;
    const same = before.get(uid);
    if (same?.cleaning.kind === cleaning.kind) return { pod: same, gated, recorded };
    const carrying = { kind: 'Pod', ...name, uid, owner: share(owner), cleaning: share(cleaning) } as const;
    return { pod: carrying, gated, recorded };
  };
  const found = await readAll(client, '/api/v1/pods', read, signal);
  // A list that expired while its pages were read goes on with a later state, so pods may appear twice.
  const named = (isMeant: (traces: Traces) => boolean): PodName[] => {
    const names = found.filter(isMeant).map(({ pod: { namespace, name } }) => ({ namespace, name }));
    return [...new Map(names.map((pod) => [`${pod.namespace}/${pod.name}`, pod])).values()];
  };
  const pods = found.flatMap(({ pod }) => ('cleaning' in pod ? pod : []));
  return { gated: named(({ gated }) => gated), recorded: named(({ recorded }) => recorded), pods };
}

/** Returns the DaemonSets as they will be once their templates are restored. */
function byUid(daemonSets: readonly DaemonSet[], taints: Settings['taints']): CleanedCluster['daemonSetOf'] {
  const restored = new Map<string, RestoredDaemonSet>();
  for (const daemonSet of daemonSets) {
    const { uid, updateStrategy, template, rolledOut } = daemonSet;
    const decision = cleanTemplate(daemonSet, taints);
    const rolls = decision.kind === 'set';
    const tolerations = rolls ? decision.tolerations : (template.tolerations ?? []);
    restored.set(uid, { updateStrategy, tolerations, rolls, wasWhole: rolledOut });
  }
  return (uid) => restored.get(uid);
}

/** Returns the objects that belong to archaware as a whole. For some a missing right to look for one counts as "there is none". */
function ownObjects({ webhook, ownCertificates, namespace }: LookOptions): [object: OwnObject, mayBeThere: boolean][] {
  const secret = `/api/v1/namespaces/${namespace}/secrets/${WEBHOOK_SECRET}`;
  return [
    [WEBHOOK, webhook],
    ...POLICIES.map((policy): [OwnObject, boolean] => [policy, true]),
    // The policy that places pods reads it. Without that policy it does nothing.
    [{ kind: 'KnownImages', namespace, name: KNOWN_IMAGES, path: knownImagesPath(namespace) }, false],
    [{ kind: 'Secret', namespace, name: WEBHOOK_SECRET, path: secret }, ownCertificates],
  ];
}

async function exists({ client, signal }: LookOptions, path: string, mayBeThere: boolean): Promise<boolean> {
  try {
    // API servers before 1.36 do not know the kind of these policies.
    return (await find(client, path, signal)) !== undefined;
  } catch (error) {
    if (isForbidden(error) && !mayBeThere) return false;
    throw error;
  }
}
