import type { Result } from '../../kube/control-loop.ts';
import { isRefusal } from '../../kube/errors.ts';
import type { Store } from '../../kube/watch/collection.ts';
import {
  decideNode,
  type NodeChange,
  type NodeDecision,
  type NodeRules,
  taintsAlone,
} from '../../placement/nodes/decide-node.ts';
import { labelConflictNote } from '../../placement/nodes/labels.ts';
import { managedText, readManaged } from '../../placement/nodes/managed.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { nodeAction, nodePatch } from '../../placement/patch/patch.ts';
import { regardingNode } from '../announce.ts';
import type { WritingOptions } from '../controller-options.ts';
import { createRecords, note } from '../memory.ts';
import { createNotices, type Notices } from '../refusals.ts';

export type NodeControllerOptions = WritingOptions & {
  readonly nodes: Store<Node>;
  readonly rules: () => NodeRules;
  /** Whether this node may be tainted yet. It is asked only where a taint would change. */
  readonly bootstrapped: (name: string) => boolean;
  /** Called for a node that does not wait for a taint: nothing of it would change, or it is gone. */
  readonly onSettled: (name: string) => void;
  /** Reads the node from the API server; undefined if it is gone. */
  readonly fetch: (name: string, signal: AbortSignal) => Promise<Node | undefined>;
};

/** How often a conflict of labels is looked at; the announcer decides whether another Event is due. */
const CONFLICT_AGAIN_MS = 10 * 60_000;

/** How often a write is tried with a freshly read node before the queue takes over. */
const ATTEMPTS = 5;

type NodeParts = NodeControllerOptions & Notices & { readonly records: ReturnType<typeof createRecords> };

/** Creates the node controller, which decides and writes the taints and labels of nodes. `kube/control-loop.ts` owns its queue and its workers. */
export function createNodeController(options: NodeControllerOptions) {
  const records = createRecords();
  const parts: NodeParts = { ...options, ...createNotices(options), records };
  return {
    reconcile: (key: string, signal: AbortSignal): Promise<Result> => reconcile(parts, key, signal),
    states: records.all,
    contested: (): number => parts.contention.count(records.all.values()),
  };
}

async function reconcile(parts: NodeParts, key: string, signal: AbortSignal): Promise<Result> {
  let node = parts.nodes.get(key);
  if (node === undefined) {
    parts.records.forget(key);
    parts.onSettled(key);
    return { outcome: 'unchanged' };
  }
  // A node that joins gets and loses taints within milliseconds. Until archaware's taint is set, any pod may land on it. So a
  // conflict is retried here instead of in the queue.
  for (let attempt = 1; ; attempt++) {
    const result = await reconcileOnce(parts, key, node, signal);
    if (result.outcome !== 'conflict' || result.againInMs !== undefined || attempt === ATTEMPTS) return result;
    node = await parts.fetch(key, signal);
    if (node === undefined) return { outcome: 'unchanged' };
  }
}

async function reconcileOnce(parts: NodeParts, key: string, node: Node, signal: AbortSignal): Promise<Result> {
  const { announcer, contention } = parts;
  const record = parts.records.of(key, node.uid);
  const regarding = regardingNode(node);
  const decision = decideOnceAllowed(parts, node);
  for (const conflict of decision.conflicts) {
    const problem = { reason: 'LabelConflict', action: 'Labelling', note: labelConflictNote(conflict) } as const;
    announcer.report(record, regarding, problem);
  }
  if (decision.kind === 'wait') return { outcome: 'waiting' };
  // Nothing happens to a node that changes nothing, so a conflict that lasts is reported again from here.
  const again = decision.conflicts.length > 0 ? { againInMs: CONFLICT_AGAIN_MS } : {};
  if (decision.kind !== 'set') return { outcome: 'unchanged', ...again };

  const intentOf = ({ managed }: NodeChange) => managed ?? '';
  /** Returns the milliseconds to leave the node alone because another writer keeps undoing this change; 0: write. */
  const contestedMs = (change: NodeChange) =>
    contention.waitMs(record, intentOf(change), regarding, {
      action: 'Tainting',
      note: `another writer undid the taint or labels of archaware (${change.managed ?? 'their removal'}) three times in ten minutes`,
    });
  const send = async (change: NodeChange) => {
    const target = { kind: 'Node', name: node.name, action: nodeAction(node, change) } as const;
    const written = await parts.write(target, nodePatch(node, change), signal);
    // The store is not updated here but by the event of this write: its listeners compare the node before and after.
    if (written.kind === 'written') contention.wrote(record, intentOf(change));
    return written;
  };
  const waitMs = contestedMs(decision);
  if (waitMs > 0) return { outcome: 'conflict', againInMs: waitMs };
  try {
    const { kind } = await send(decision);
    note(record, 'refused', undefined);
    if (kind === 'conflict') return { outcome: 'conflict' };
    if (kind === 'gone') return { outcome: 'unchanged' };
    return { outcome: 'written', detail: managedText(readManaged(decision.managed)) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    parts.noteRefusal(record, regarding, error);
    // Its taints are written without its labels.
    const part = taintsAlone(node, decision);
    if (part !== undefined && contestedMs(part) === 0) await send(part);
    throw error;
  }
}

/** Whether a node may be tainted is asked last: it depends on every DaemonSet, and most events change nothing. */
function decideOnceAllowed({ rules, bootstrapped, onSettled }: NodeParts, node: Node): NodeDecision {
  const decision = decideNode(node, rules(), true);
  if (decision.kind === 'set' && !bootstrapped(node.name)) return decideNode(node, rules(), false);
  if (decision.kind !== 'set') onSettled(node.name);
  return decision;
}
