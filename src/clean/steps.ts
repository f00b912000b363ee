import type { Clock } from '../kit/clock.ts';
import { cleanNode } from '../placement/nodes/decide.ts';
import { readManaged } from '../placement/nodes/managed.ts';
import type { Node } from '../placement/nodes/node.ts';
import { isDaemonSet } from '../placement/objects/kinds.ts';
import { type OwnControllers, wantedOnes, wantText } from './controllers.ts';
import { type CarryingPod, type Inventory, type LookOptions, takeInventory } from './inventory.ts';
import type { Item, Ledger, Row } from './ledger.ts';
import {
  disownDaemonSets,
  forgetPods,
  removeConfigurations,
  restoreDaemonSets,
  type StepOptions,
  ungatePods,
  untaintNodes,
} from './objects.ts';
import { replacePods } from './pods.ts';

export type CleanOptions = {
  readonly steps: StepOptions;
  readonly look: LookOptions;
  readonly clock: Clock;
  /** What to do with pods that have archaware's tolerations. */
  readonly how: 'evict' | 'delete' | 'keep';
  readonly timeoutMs: number;
  /** The uids of the nodes that existed before `clean` began. A taint on a later node comes from its kubelet. */
  readonly nodesBefore: ReadonlySet<string>;
  /** Looks again for controllers that could undo the work. */
  readonly findControllers: () => Promise<OwnControllers>;
  /** Asks for consent before pods are replaced. */
  readonly mayReplace: (pods: readonly CarryingPod[]) => Promise<boolean>;
  readonly say: (line: string) => void;
};

/** Records everything in an inventory. With `--pods keep`, no pod is recorded. */
export function record(
  ledger: Ledger,
  inventory: Inventory,
  taints: LookOptions['taints'],
  how: CleanOptions['how'],
): void {
  for (const [row, items] of rowsOf(inventory, taints)) ledger.found(row, items);
  for (const item of inventory.unrecorded) ledger.kept('daemonSets', item, item.reason);
  if (how === 'keep') return;
  for (const pod of inventory.pods) {
    if (pod.cleaning.kind === 'keep') ledger.kept('pods', pod, pod.cleaning.reason);
    else ledger.found('pods', [pod]);
  }
}

/** Records what a run would do with everything in an inventory. With `--pods keep`, no pod is recorded. */
export function recordPlan(
  ledger: Ledger,
  inventory: Inventory,
  taints: LookOptions['taints'],
  how: CleanOptions['how'],
): void {
  for (const [row, items] of rowsOf(inventory, taints)) {
    for (const item of items) ledger.left(row, item, PLANNED[row]);
  }
  for (const item of inventory.unrecorded) ledger.kept('daemonSets', item, item.reason);
  if (how === 'keep') return;
  for (const pod of inventory.pods) ledger.left('pods', pod, plannedFor(pod.cleaning, how));
}

/** What a run does with the objects of a row, for a dry run. */
const PLANNED: Readonly<Record<Exclude<Row, 'pods' | 'controllers'>, string>> = {
  configurations: 'would be deleted',
  gates: 'its gate would be removed',
  nodes: 'its taint and labels would be removed',
  daemonSets: 'its tolerations would be removed, which rolls it',
  annotations: 'its annotation would be removed',
};

function plannedFor(cleaning: CarryingPod['cleaning'], how: 'evict' | 'delete'): string {
  switch (cleaning.kind) {
    case 'replace':
      return how;
    case 'rolls':
      return 'rolls: its DaemonSet replaces it';
    case 'keep':
    case 'leave':
      return `${cleaning.kind}: ${cleaning.reason}`;
    default:
      return cleaning satisfies never;
  }
}

/** Returns everything in an inventory but the pods with tolerations, as rows of the ledger. */
function rowsOf(inventory: Inventory, taints: LookOptions['taints']): [keyof typeof PLANNED, readonly Item[]][] {
  const podItem = ({ namespace, name }: { namespace: string; name: string }) => ({ kind: 'Pod', namespace, name });
  return [
    ['configurations', [...inventory.configurations]],
    ['gates', inventory.gated.map(podItem)],
    ['nodes', inventory.nodes.map((node) => ({ kind: 'Node', name: node.name, labels: labelsOf(node, taints) }))],
    ['daemonSets', inventory.daemonSets.map(({ namespace, name }) => ({ kind: 'DaemonSet', namespace, name }))],
    ['annotations', inventory.recorded.map(podItem)],
  ];
}

/**
 * Undoes what `run` did, in an order that disturbs no pod on the way. If a step fails, the steps that depend on it are not done. The
 * ledger has the result of everything, even if this throws: after a lost Lease, an interruption, or without an API server.
 */
export async function cleanAll(options: CleanOptions, before: Inventory): Promise<void> {
  const { steps, look, how, say } = options;
  const { ledger } = steps;
  record(ledger, before, look.taints, how);
  const done = (row: Row) => {
    const { removed, remaining } = ledger.count(row);
    return `${removed} of ${removed + remaining}`;
  };

  await removeConfigurations(steps, before.configurations);
  say(`admission configurations: ${done('configurations')} removed`);
  // Gates are removed first, and again at the end: a review that was under way may have added one.
  await ungatePods(steps, before.gated);
  if (before.gated.length > 0) say(`gates: ${done('gates')} removed`);
  await untaint(options, before.nodes);
  say(`nodes: ${done('nodes')} now without taint and labels of archaware`);
  // If nodes are still tainted, daemon pods without tolerations would leave them at once, and pods could not come back to them.
  if (ledger.count('nodes').remaining > 0) {
    ledger.leaveRest('not touched while nodes are still tainted; run clean again');
    return;
  }
  await restoreDaemonSets(steps, before.daemonSets);
  say(`DaemonSets: ${done('daemonSets')} restored`);

  if (how !== 'keep') await replace(options, before.pods, how);
  await lookAgain(options, before);
}

/** Replaces pods, unless the user says no. */
async function replace(options: CleanOptions, found: readonly CarryingPod[], how: 'evict' | 'delete'): Promise<void> {
  const { steps, clock, timeoutMs, say } = options;
  const { ledger, signal, client, mayWrite } = steps;
  const pods = found.filter(({ cleaning }) => cleaning.kind !== 'keep').map((pod) => unlessStuck(pod, ledger));
  if (pods.length === 0) return;
  const isAnyReplaced = pods.some(({ cleaning }) => cleaning.kind === 'replace' || cleaning.kind === 'rolls');
  if (isAnyReplaced && !(await options.mayReplace(pods))) {
    for (const pod of pods) ledger.left('pods', pod, 'kept, because you answered no');
    return;
  }
  await replacePods({ client, clock, mayWrite, how, ledger, timeoutMs, onProgress: say, signal }, pods);
}

/** A DaemonSet whose template could not be restored would give a new pod the same tolerations. */
function unlessStuck(pod: CarryingPod, ledger: Ledger): CarryingPod {
  const { namespace, owner } = pod;
  if (!isDaemonSet(owner) || !ledger.remains('daemonSets', { kind: 'DaemonSet', namespace, name: owner.name })) {
    return pod;
  }
  return { ...pod, cleaning: { kind: 'leave', reason: 'its DaemonSet still has tolerations of archaware' } };
}

/** Records the pods of the first search that no longer have archaware's tolerations, or no longer exist. */
function recordGone({ steps }: CleanOptions, before: Inventory, now: Inventory): void {
  const carrying = new Set(now.pods.map(({ uid }) => uid));
  for (const pod of before.pods) if (!carrying.has(pod.uid)) steps.ledger.removed('pods', pod);
}

/** Searches again: removes traces that appeared meanwhile, and records what is left. */
async function lookAgain(options: CleanOptions, before: Inventory): Promise<void> {
  const { steps, look, how, say } = options;
  const { ledger } = steps;
  const now = await takeInventory(look, before.pods);
  for (const [row, items] of rowsOf(now, look.taints)) {
    // New pods have no tolerations of archaware, because no controller runs. The earlier pods are handled below.
    if (row !== 'annotations') ledger.found(row, items);
  }
  await removeConfigurations(steps, now.configurations);
  await ungatePods(steps, now.gated);
  await untaint(options, now.nodes);
  if (now.nodes.length > 0)
    say(`nodes that joined or changed meanwhile: ${now.nodes.map(({ name }) => name).join(', ')}`);
  if (ledger.count('nodes').remaining === 0) {
    await restoreDaemonSets(steps, now.daemonSets);
    await disownDaemonSets(steps, now.owned);
  }
  if (how !== 'keep') recordGone(options, before, now);
  await forgetPods(steps, before.recorded);
  for (const deployment of wantedOnes(await options.findControllers())) {
    const { namespace, name } = deployment;
    const reason = `${wantText(deployment)} again: it writes again what clean removed`;
    ledger.left('controllers', { kind: 'Deployment', namespace, name }, reason);
  }
}

/** Removes taints, and reports the nodes that somebody else creates with archaware's taint. */
async function untaint({ steps, nodesBefore, say }: CleanOptions, nodes: readonly Node[]): Promise<void> {
  await untaintNodes(steps, nodes);
  for (const { name } of nodes.filter((node) => !nodesBefore.has(node.uid) && isMadeTainted(node))) {
    say(
      `Node ${name} joined with the taint of archaware while clean was running: remove the taint from its kubelet (--register-with-taints, registerWithTaints) ` +
        'or its node group, or the next nodes will have it, too',
    );
  }
}

function isMadeTainted({ managed }: Node): boolean {
  return readManaged(managed).taints.length === 0;
}

/** Returns how many labels `clean` removes from a node. */
function labelsOf(node: Node, taints: LookOptions['taints']): number {
  const decision = cleanNode(node, taints);
  return decision.kind === 'set' ? decision.removedLabels.length : 0;
}
