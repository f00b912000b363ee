import type { ApiClient } from '../kube/client.ts';
import { ApiError, isGone, LeaseLostError } from '../kube/errors.ts';
import { listAll } from '../kube/list.ts';
import { pathOf, type Writer } from '../kube/writer.ts';
import { GUARD_POLICY, MANAGED_ANNOTATION, WEBHOOK_CONFIGURATION, WEBHOOK_SECRET } from '../names.ts';
import { type DaemonSet, readDaemonSet, readRecorded } from '../placement/daemonset.ts';
import { pointerPart } from '../placement/diff.ts';
import { isObject, type JsonObject } from '../placement/json.ts';
import { type Node, readManaged, readNode, taintKind, undoNode } from '../placement/node.ts';
import { daemonSetPatch, nodePatch, type Operation, releasePatch } from '../placement/patch.ts';
import { type Pod, readPod } from '../placement/pod.ts';
import { readPodManaged } from '../placement/pod-managed.ts';
import type { Settings } from '../placement/settings.ts';
import { undoTemplate } from '../placement/undo.ts';

/** Something of ours that is still there, and why. */
export type Left = {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly reason: string;
};

export type UndoOptions = {
  readonly client: ApiClient;
  readonly write: Writer;
  readonly mayWrite: () => boolean;
  readonly taints: Settings['taints'];
  /** Whether there may be a webhook of ours: else not being allowed to look for one means that there is none. */
  readonly webhook: boolean;
  /** The same of the Secret with certificates that we made. */
  readonly ownCertificates: boolean;
  /** Where the Secret with our certificates is. */
  readonly ownNamespace: string;
  readonly signal: AbortSignal;
};

/** What there is to undo besides pods, as the cluster is now. */
export type Inventory = {
  readonly configurations: readonly OwnObject[];
  /** Pods that hold our gate, and those that admission wrote nothing to but affinity. */
  readonly gated: readonly Pod[];
  readonly recorded: readonly Pod[];
  readonly nodes: readonly Node[];
  readonly daemonSets: readonly DaemonSet[];
  /** Every taint that we set or may have set, as `key` and `effect`. */
  readonly keys: readonly { readonly key: string; readonly effect: string }[];
};

/** An object that is ours as a whole. */
type OwnObject = { readonly kind: string; readonly namespace?: string; readonly name: string; readonly path: string };

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
/** The binding first: a policy without one does nothing. */
const POLICIES: readonly OwnObject[] = [
  { kind: 'MutatingAdmissionPolicyBinding', plural: 'mutatingadmissionpolicybindings' },
  { kind: 'MutatingAdmissionPolicy', plural: 'mutatingadmissionpolicies' },
].map(({ kind, plural }) => ({ kind, name: GUARD_POLICY, path: `${ADMISSION}/${plural}/${GUARD_POLICY}` }));
const WEBHOOK: OwnObject = {
  kind: 'MutatingWebhookConfiguration',
  name: WEBHOOK_CONFIGURATION,
  path: `${ADMISSION}/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`,
};
const ATTEMPTS = 10;
const IN_FLIGHT = 8;

/** Looks at the cluster and says what of ours is in it. */
export async function takeInventory(options: UndoOptions): Promise<Inventory> {
  const { client, taints, signal } = options;
  const allNodes = (await listAll(client, '/api/v1/nodes', signal)).map(readNode);
  const allSets = (await listAll(client, '/apis/apps/v1/daemonsets', signal)).map(readDaemonSet);
  const keys = new Map([[taintKind(taints), { key: taints.key, effect: taints.effect }]]);
  const recorded = [
    ...allNodes.flatMap(({ managed }) => readManaged(managed).taints),
    ...allSets.flatMap(({ recorded: annotation }) => readRecorded(annotation)),
  ];
  for (const { key, effect } of recorded) keys.set(taintKind({ key, effect }), { key, effect });
  const configurations = [];
  for (const object of [WEBHOOK, ...POLICIES, secretIn(options.ownNamespace)]) {
    if (await exists(options, object)) configurations.push(object);
  }
  const pods = await listAll(client, '/api/v1/pods', signal);
  return {
    configurations,
    gated: pods.map((object) => readPod(object)).filter(({ gated }) => gated !== undefined),
    recorded: pods
      .filter((object) => readPodManaged(object)?.tolerations.length === 0)
      .map((object) => readPod(object)),
    nodes: allNodes.filter((node) => undoNode(node, taints).kind === 'set'),
    daemonSets: allSets.filter((daemonSet) => undoTemplate(daemonSet).kind === 'set'),
    keys: [...keys.values()],
  };
}

/** Takes away what would put our tolerations back while they are being removed. */
export async function removeConfigurations(
  { client, mayWrite, signal }: UndoOptions,
  inventory: Inventory,
): Promise<Left[]> {
  const left: Left[] = [];
  for (const { kind, namespace, path, name } of inventory.configurations) {
    try {
      if (!mayWrite()) throw new LeaseLostError('the lease was lost');
      await client.request('delete', path, { signal });
    } catch (error) {
      if (!isGone(error)) left.push({ kind, ...inNamespace(namespace), name, reason: reasonOf(error, signal) });
    }
  }
  return left;
}

/** Takes our gate from every pod that holds it, and what admission noted on it: it is scheduled as its author wished. */
export function ungatePods(options: UndoOptions, pods: readonly Pod[]): Promise<Left[]> {
  return changePods(options, pods, (object) => {
    const pod = readPod(object);
    return pod.gated && releasePatch(pod, pod.gated, undefined);
  });
}

/** Takes our annotation from pods whose affinity we wrote: that cannot be taken from them, and harms nobody. */
export function forgetPods(options: UndoOptions, pods: readonly Pod[]): Promise<Left[]> {
  return changePods(options, pods, (object) => {
    const path = `/metadata/annotations/${pointerPart(MANAGED_ANNOTATION)}`;
    if (readPodManaged(object) === undefined) return undefined;
    return [
      { op: 'test', path: '/metadata/uid', value: readPod(object).uid },
      { op: 'remove', path },
    ];
  });
}

function changePods(
  options: UndoOptions,
  pods: readonly Pod[],
  patchFor: (pod: JsonObject) => Operation[] | undefined,
): Promise<Left[]> {
  return each(pods, async ({ namespace, name }) => {
    const target = { kind: 'Pod', namespace, name, action: 'release' } as const;
    // What a write of a pod gives back is its metadata alone.
    const get = async () => {
      const pod = await options.client.request('get', pathOf(target), { signal: options.signal });
      return isObject(pod) ? pod : {};
    };
    try {
      const reason = await settle(options, target, await get(), get, patchFor);
      return reason === undefined ? [] : [{ kind: 'Pod', namespace, name, reason }];
    } catch (error) {
      return isGone(error) ? [] : [{ kind: 'Pod', namespace, name, reason: reasonOf(error, options.signal) }];
    }
  });
}

/** Takes our taint and our labels from every node that has any. */
export function untaintNodes(options: UndoOptions, nodes: readonly Node[]): Promise<Left[]> {
  return each(nodes, async (node) => {
    const target = { kind: 'Node', name: node.name, action: 'untaint' } as const;
    const reason = await settle(options, target, node, readNode, (now) => {
      const decision = undoNode(now, options.taints);
      return decision.kind === 'set' ? nodePatch(now, decision) : undefined;
    });
    return reason === undefined ? [] : [{ kind: 'Node', name: node.name, reason }];
  });
}

/** Takes our tolerations from every template that has them. */
export function restoreDaemonSets(options: UndoOptions, daemonSets: readonly DaemonSet[]): Promise<Left[]> {
  return each(daemonSets, async (daemonSet) => {
    const { namespace, name } = daemonSet;
    const target = { kind: 'DaemonSet', namespace, name, action: 'restore' } as const;
    const reason = await settle(options, target, daemonSet, readDaemonSet, (now) => {
      const decision = undoTemplate(now);
      return decision.kind === 'set' ? daemonSetPatch(now, decision) : undefined;
    });
    return reason === undefined ? [] : [{ kind: 'DaemonSet', namespace, name, reason }];
  });
}

/** Writes until the object is as it should be; says why it is not. */
async function settle<T>(
  { client, write, signal }: UndoOptions,
  target: Parameters<Writer>[0],
  first: T,
  read: (object: JsonObject) => T | Promise<T>,
  patchFor: (object: T) => Operation[] | undefined,
): Promise<string | undefined> {
  let object = first;
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const patch = patchFor(object);
      if (patch === undefined) return undefined;
      const written = await write(target, patch, signal);
      if (written.kind === 'gone') return undefined;
      // What came back is looked at again: something in the API server may have put ours back in.
      const now = written.kind === 'written' ? written.object : await client.request('get', pathOf(target), { signal });
      object = await read(isObject(now) ? now : {});
    }
    return `another writer changed it ${ATTEMPTS} times meanwhile; run clean again`;
  } catch (error) {
    return isGone(error) ? undefined : reasonOf(error, signal);
  }
}

function secretIn(namespace: string): OwnObject {
  const path = `/api/v1/namespaces/${namespace}/secrets/${WEBHOOK_SECRET}`;
  return { kind: 'Secret', namespace, name: WEBHOOK_SECRET, path };
}

function inNamespace(namespace: string | undefined) {
  return namespace === undefined ? {} : { namespace };
}

async function exists(options: UndoOptions, { kind, path }: OwnObject): Promise<boolean> {
  const { client, webhook, ownCertificates, signal } = options;
  try {
    await client.request('get', path, { signal });
    return true;
  } catch (error) {
    // Servers before 1.36 do not know the kind of the policies.
    if (isGone(error)) return false;
    const mayNotLook = error instanceof ApiError && error.status === 403;
    const mayBeThere = kind === 'Secret' ? ownCertificates : kind !== WEBHOOK.kind || webhook;
    if (mayNotLook && !mayBeThere) return false;
    throw error;
  }
}

async function each<T>(items: readonly T[], act: (item: T) => Promise<Left[]>): Promise<Left[]> {
  const left: Left[] = [];
  const queue = [...items];
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) left.push(...(await act(item)));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return left;
}

/** The message of what went wrong; throws it on where everything is to end. */
export function reasonOf(error: unknown, signal: AbortSignal): string {
  signal.throwIfAborted();
  if (error instanceof Error && error.name === 'LeaseLostError') throw error;
  return error instanceof Error ? error.message : String(error);
}
