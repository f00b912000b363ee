import type { ApiClient } from '../kube/client.ts';
import { isGone, LeaseLostError } from '../kube/errors.ts';
import { listAll } from '../kube/list.ts';
import { pathOf, type Writer } from '../kube/writer.ts';
import { GUARD_POLICY } from '../names.ts';
import { type DaemonSet, readDaemonSet, readRecorded } from '../placement/daemonset.ts';
import { isObject } from '../placement/json.ts';
import { type Node, readManaged, readNode, undoNode } from '../placement/node.ts';
import { daemonSetPatch, nodePatch, type Operation } from '../placement/patch.ts';
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
  readonly signal: AbortSignal;
};

/** What there is to undo besides pods, as the cluster is now. */
export type Inventory = {
  readonly configurations: readonly { readonly kind: string; readonly path: string; readonly name: string }[];
  readonly nodes: readonly Node[];
  readonly daemonSets: readonly DaemonSet[];
  /** Every taint that we set or may have set, as `key` and `effect`. */
  readonly keys: readonly { readonly key: string; readonly effect: string }[];
};

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
/** The binding first: a policy without one does nothing. */
const CONFIGURATIONS = [
  { kind: 'MutatingAdmissionPolicyBinding', path: `${ADMISSION}/mutatingadmissionpolicybindings/${GUARD_POLICY}` },
  { kind: 'MutatingAdmissionPolicy', path: `${ADMISSION}/mutatingadmissionpolicies/${GUARD_POLICY}` },
];
const ATTEMPTS = 10;
const IN_FLIGHT = 8;

/** Looks at the cluster and says what of ours is in it. */
export async function takeInventory({ client, taints, signal }: UndoOptions): Promise<Inventory> {
  const allNodes = (await listAll(client, '/api/v1/nodes', signal)).map(readNode);
  const allSets = (await listAll(client, '/apis/apps/v1/daemonsets', signal)).map(readDaemonSet);
  const keys = new Map([[`${taints.key}:${taints.effect}`, { key: taints.key, effect: taints.effect }]]);
  const recorded = [
    ...allNodes.flatMap(({ managed }) => readManaged(managed).taints),
    ...allSets.flatMap(({ recorded: annotation }) => readRecorded(annotation)),
  ];
  for (const { key, effect } of recorded) keys.set(`${key}:${effect}`, { key, effect });
  const configurations = [];
  for (const { kind, path } of CONFIGURATIONS) {
    if (await exists(client, path, signal)) configurations.push({ kind, path, name: GUARD_POLICY });
  }
  return {
    configurations,
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
  for (const { kind, path, name } of inventory.configurations) {
    try {
      if (!mayWrite()) throw new LeaseLostError('the lease was lost');
      await client.request('delete', path, { signal });
    } catch (error) {
      if (!isGone(error)) left.push({ kind, name, reason: reasonOf(error, signal) });
    }
  }
  return left;
}

/** Takes our taint from every node that has it. */
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
  read: (object: Parameters<typeof readNode>[0]) => T,
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
      object = read(isObject(now) ? now : {});
    }
    return `another writer changed it ${ATTEMPTS} times meanwhile; run clean again`;
  } catch (error) {
    return isGone(error) ? undefined : reasonOf(error, signal);
  }
}

async function exists(client: ApiClient, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.request('get', path, { signal });
    return true;
  } catch (error) {
    // Servers before 1.36 do not know the kind.
    if (isGone(error)) return false;
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
