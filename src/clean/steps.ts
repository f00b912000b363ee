import type { FoundDeployment } from '../kube/installation.ts';
import { cleanNode } from '../placement/nodes/decide-node.ts';
import { readManaged } from '../placement/nodes/managed.ts';
import type { Node } from '../placement/nodes/node.ts';
import { isDaemonSet } from '../placement/objects/kinds.ts';
import {
  disownDaemonSets,
  forgetPods,
  removeConfigurations,
  removeReports,
  restoreDaemonSets,
  type StepOptions,
  ungatePods,
  untaintNodes,
} from './object-steps.ts';
import type { Item, OutcomeLedger, Row } from './outcomes.ts';
import { wantText } from './own-controller.ts';
import { type RestartOptions, restartOwners } from './restart-owners.ts';
import { type CarryingPod, keepsTolerations, type LookOptions, type TraceInventory, takeInventory } from './traces.ts';

export type CleanOptions = LookOptions &
  StepOptions &
  RestartOptions & {
    /** What to do with the owners of pods that have archaware's tolerations or affinity. */
    readonly how: 'restart' | 'keep';
    /** The uids of the nodes that existed before `clean` began. A taint on a later node comes from its kubelet. */
    readonly nodesBefore: ReadonlySet<string>;
    /** Looks again for the Deployment, whose replicas could undo the work. */
    readonly findDeployment: () => Promise<FoundDeployment | undefined>;
  };

/**
 * Records everything in an inventory: as found, or for a dry run (`planned`) with what a run would do. With `--pods keep`, no pod is
 * recorded.
 */
export function record(
  ledger: OutcomeLedger,
  inventory: TraceInventory,
  { taints, how, planned }: Pick<CleanOptions, 'taints' | 'how'> & { readonly planned: boolean },
): void {
  const note = (row: Row, item: Item, plan: string) =>
    planned ? ledger.left(row, item, plan) : ledger.found(row, [item]);
  for (const [row, items] of rowsOf(inventory, taints)) for (const item of items) note(row, item, PLANNED[row]);
  for (const item of inventory.unrecorded) ledger.kept('daemonSets', item, item.reason);
  if (how === 'keep') return;
  for (const pod of inventory.pods) {
    const { cleaning } = pod;
    if (!planned) ledger.found('pods', [pod]);
    else if (cleaning.kind === 'keep') ledger.kept('pods', pod, cleaning.reason);
    else ledger.left('pods', pod, OF_PODS[cleaning.kind][0]);
  }
}

/** What a run does with the objects of a row, for a dry run. */
const PLANNED: Readonly<Record<Exclude<Row, 'pods' | 'controllers'>, string>> = {
  configurations: 'would be deleted',
  gates: 'its gate would be removed',
  nodes: 'its taint and labels would be removed',
  daemonSets: 'its tolerations would be removed, which rolls it',
  annotations: 'its annotation would be removed',
  reports: 'its annotation would be removed',
};

/** The same for a pod with tolerations, and why it is kept as long as nothing else is known. */
const OF_PODS = {
  restart: ['restart: its owner is restarted, if all of its pods are available', 'its owner has not replaced it yet'],
  rolls: ['rolls: its DaemonSet replaces it', 'its DaemonSet has not replaced it yet'],
} as const;

/** Returns everything in an inventory but the pods with tolerations, as rows of the ledger. */
function rowsOf(inventory: TraceInventory, taints: LookOptions['taints']): [keyof typeof PLANNED, readonly Item[]][] {
  const podItem = ({ namespace, name }: { namespace: string; name: string }) => ({ kind: 'Pod', namespace, name });
  return [
    ['configurations', [...inventory.configurations]],
    ['gates', inventory.gated.map(podItem)],
    ['nodes', inventory.nodes.map((node) => ({ kind: 'Node', name: node.name, labels: labelsOf(node, taints) }))],
    ['daemonSets', inventory.daemonSets.map(({ namespace, name }) => ({ kind: 'DaemonSet', namespace, name }))],
    ['annotations', inventory.recorded.map(podItem)],
    ['reports', inventory.reports.map(({ name }) => ({ kind: 'Namespace', name }))],
  ];
}

/**
 * Undoes what `run` did, in an order that disturbs no pod on the way, and reads the cluster again at the end. If a step fails, the
 * steps that depend on it are not done. The ledger has the result of everything, even if this throws: after a lost Lease, an
 * interruption, or without an API server. `before`: what was there when nobody else wrote any more.
 */
export async function cleanAll(options: CleanOptions, before: TraceInventory): Promise<void> {
  const { ledger, taints, how, say } = options;
  record(ledger, before, { taints, how, planned: false });
  await sweep(options, before, (row) => {
    const { removed, remaining } = ledger.count(row);
    if (row !== 'gates' || before.gated.length > 0) say(DONE[row](`${removed} of ${removed + remaining}`));
  });
  if (ledger.count('nodes').remaining > 0) {
    ledger.leaveRest('not touched while nodes are still tainted; run clean again');
    return;
  }
  if (how === 'restart') await restart(options, before.pods);
  await lookAgain(options, before);
  await forgetPods(options, before.recorded);
  await removeReports(options, before.reports);
  const deployment = await options.findDeployment();
  const wants = wantText(deployment);
  if (deployment === undefined || wants === undefined) return;
  const { namespace, name } = deployment;
  const reason = `${wants} again: it writes again what clean removed`;
  ledger.left('controllers', { kind: 'Deployment', namespace, name }, reason);
}

/** The line after a step; `count`: `2 of 3`. */
const DONE = {
  configurations: (count: string) => `admission configurations: ${count} removed`,
  gates: (count: string) => `gates: ${count} removed`,
  nodes: (count: string) => `nodes: ${count} now without taint and labels of archaware`,
  daemonSets: (count: string) => `DaemonSets: ${count} restored`,
};

/** Does the steps that need no consent, in their order. */
async function sweep(
  options: CleanOptions,
  found: TraceInventory,
  onDone: (row: keyof typeof DONE) => void,
): Promise<void> {
  const { configurations } = found;
  await removeConfigurations(
    options,
    configurations.filter((one) => !keepsTolerations(one)),
  );
  await ungatePods(options, found.gated);
  onDone('gates');
  await untaint(options, found.nodes);
  onDone('nodes');
  // If nodes are still tainted, daemon pods without tolerations would leave them at once, and pods could not come back to them.
  const isTainted = options.ledger.count('nodes').remaining > 0;
  // Until then these policies keep them: somebody may apply a DaemonSet meanwhile, and Argo CD's self-heal does it all the time.
  if (!isTainted) await removeConfigurations(options, configurations.filter(keepsTolerations));
  onDone('configurations');
  if (isTainted) return;
  await restoreDaemonSets(options, found.daemonSets);
  await disownDaemonSets(options, found.owned);
  onDone('daemonSets');
}

/** Restarts the owners of pods. By now, what the pods carry is harmless, so those that stay count as kept. */
async function restart(options: CleanOptions, found: readonly CarryingPod[]): Promise<void> {
  const { ledger } = options;
  const pods = found.map((pod) => unlessStuck(pod, ledger));
  for (const pod of pods) {
    const { cleaning } = pod;
    ledger.kept('pods', pod, cleaning.kind === 'keep' ? cleaning.reason : OF_PODS[cleaning.kind][1]);
  }
  const owned = pods.filter(({ cleaning }) => cleaning.kind !== 'keep');
  if (owned.length > 0) await restartOwners(options, owned);
}

/** A DaemonSet whose template could not be restored would give a new pod the same tolerations. */
function unlessStuck(pod: CarryingPod, ledger: OutcomeLedger): CarryingPod {
  const { namespace, owner } = pod;
  if (!isDaemonSet(owner) || !ledger.remains('daemonSets', { kind: 'DaemonSet', namespace, name: owner.name })) {
    return pod;
  }
  return { ...pod, cleaning: { kind: 'keep', reason: 'its DaemonSet still has tolerations of archaware' } };
}

/** How often the cluster is read again at most. Nodes that join with the taint could let it go on for ever. */
const MOST_LOOKS = 5;

/**
 * Reads the cluster again, to prove that nothing is left. What has appeared meanwhile is removed, and then it is read once more: a
 * review that was under way may have added a gate, a node may have joined with the taint.
 */
async function lookAgain(options: CleanOptions, before: TraceInventory): Promise<void> {
  const { ledger, taints, how, say } = options;
  for (let looks = 1, isProven = false; !isProven; looks++) {
    const now = await takeInventory(options, before.pods);
    // Only the pods of the first reading count: no controller runs, so later pods have no tolerations and no record of archaware.
    const rows = rowsOf(now, taints).filter(([row]) => row !== 'annotations' && row !== 'reports');
    for (const [row, items] of rows) ledger.found(row, items);
    await sweep(options, now, (row) => {
      if (row !== 'nodes' || now.nodes.length === 0) return;
      say(`nodes that joined or changed meanwhile: ${now.nodes.map(({ name }) => name).join(', ')}`);
    });
    const isChanged = rows.some(([row, items]) => items.some((item) => !ledger.remains(row, item)));
    isProven = !isChanged || looks === MOST_LOOKS;
    if (!isProven || how === 'keep') continue;
    const carrying = new Set(now.pods.map(({ uid }) => uid));
    for (const pod of before.pods) if (!carrying.has(pod.uid)) ledger.removed('pods', pod);
  }
}

/** Removes taints, and reports the nodes that somebody else creates with archaware's taint. */
async function untaint(options: CleanOptions, nodes: readonly Node[]): Promise<void> {
  const { nodesBefore, say } = options;
  await untaintNodes(options, nodes);
  const isMadeTainted = ({ uid, managed }: Node) => !nodesBefore.has(uid) && readManaged(managed).taints.length === 0;
  for (const { name } of nodes.filter(isMadeTainted)) {
    say(
      `Node ${name} joined with the taint of archaware while clean was running: remove the taint from its kubelet (--register-with-taints, registerWithTaints) ` +
        'or its node group, or the next nodes will have it, too',
    );
  }
}

function labelsOf(node: Node, taints: LookOptions['taints']): number {
  const decision = cleanNode(node, taints);
  return decision.kind === 'set' ? decision.removedLabels.length : 0;
}
