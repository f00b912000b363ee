import type { Clock } from '../kit/clock.ts';
import { cleanNode } from '../placement/nodes/decide.ts';
import { readManaged } from '../placement/nodes/managed.ts';
import type { Node } from '../placement/nodes/node.ts';
import { type OwnControllers, wantedOnes, wantText } from './controllers.ts';
import { type CarryingPod, type Inventory, type LookOptions, takeInventory } from './inventory.ts';
import type { Item, Row } from './ledger.ts';
import {
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

/** Returns everything in an inventory as rows of the ledger. With `keep` there is no row for pods. */
export function rowsOf(
  inventory: Inventory,
  taints: LookOptions['taints'],
  how: CleanOptions['how'],
): [Row, readonly Item[]][] {
  const podItem = ({ namespace, name }: { namespace: string; name: string }) => ({ kind: 'Pod', namespace, name });
  return [
    ['configurations', [...inventory.configurations]],
    ['gates', inventory.gated.map(podItem)],
    ['nodes', inventory.nodes.map((node) => ({ kind: 'Node', name: node.name, labels: labelsOf(node, taints) }))],
    ['daemonSets', inventory.daemonSets.map(({ namespace, name }) => ({ kind: 'DaemonSet', namespace, name }))],
    ['pods', how === 'keep' ? [] : inventory.pods],
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
  for (const [row, items] of rowsOf(before, look.taints, how)) ledger.found(row, items);
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

  if (how !== 'keep' && before.pods.length > 0) await replace(options, before);
  await lookAgain(options, before);
}

/** Replaces the pods that have archaware's tolerations now and had them when `clean` began. */
async function replace(options: CleanOptions, before: Inventory): Promise<void> {
  const { steps, look, clock, how, timeoutMs, say } = options;
  const { ledger, signal } = steps;
  if (how === 'keep') return;
  const now = await takeInventory(look, before.pods);
  const there = stillThere(options, before, now);
  const stuck = new Set(now.daemonSets.map(({ uid }) => uid));
  const pods = there.map((pod) =>
    pod.owner !== undefined && stuck.has(pod.owner.uid)
      ? { ...pod, cleaning: { kind: 'leave', reason: 'its DaemonSet still has tolerations of archaware' } as const }
      : pod,
  );
  if (pods.length === 0) return;
  if (!(await options.mayReplace(pods))) {
    for (const pod of pods) ledger.left('pods', pod, 'kept, because you answered no');
    return;
  }
  const { client, mayWrite } = steps;
  await replacePods({ client, clock, mayWrite, how, ledger, timeoutMs, onProgress: say, signal }, pods);
}

/** Returns the pods of the first search that still have archaware's tolerations. The ledger records the others as removed. */
function stillThere({ steps }: CleanOptions, before: Inventory, now: Inventory): CarryingPod[] {
  const carrying = new Set(now.pods.map(({ uid }) => uid));
  const uids = new Set<string>();
  for (const pod of before.pods) {
    uids.add(pod.uid);
    if (!carrying.has(pod.uid)) steps.ledger.removed('pods', pod);
  }
  return now.pods.filter(({ uid }) => uids.has(uid));
}

/** Searches again: removes traces that appeared meanwhile, and records what is left. */
async function lookAgain(options: CleanOptions, before: Inventory): Promise<void> {
  const { steps, look, how, say } = options;
  const { ledger } = steps;
  const now = await takeInventory(look, before.pods);
  for (const [row, items] of rowsOf(now, look.taints, how)) {
    // New pods have no tolerations of archaware, because no controller runs. The earlier pods are handled below.
    if (row !== 'pods' && row !== 'annotations') ledger.found(row, items);
  }
  await removeConfigurations(steps, now.configurations);
  await ungatePods(steps, now.gated);
  await untaint(options, now.nodes);
  if (now.nodes.length > 0)
    say(`nodes that joined or changed meanwhile: ${now.nodes.map(({ name }) => name).join(', ')}`);
  if (ledger.count('nodes').remaining === 0) await restoreDaemonSets(steps, now.daemonSets);
  if (how !== 'keep') stillThere(options, before, now);
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
