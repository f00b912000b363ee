import type { StoreChange } from '../../kube/watch/collection.ts';
import type { EventReason } from '../../names.ts';
import type { Node } from '../../placement/nodes/node.ts';
import {
  blocksInitialization,
  joinedUntainted,
  joinedUntaintedNote,
  notInitializedNote,
  type PoolSettings,
} from '../../placement/nodes/pools.ts';
import { architectureChangeNote } from '../../placement/nodes/witness.ts';
import { createAnnouncer, regardingNode } from '../announce.ts';
import type { WritingOptions } from '../controller-options.ts';
import { createRecords } from '../memory.ts';

export type PoolNodesOptions = Pick<WritingOptions, 'events' | 'clock'> & {
  readonly settings: () => PoolSettings;
  /** Whether the node controller runs. If not, nobody sets the taint that a node lacks. */
  readonly managesNodes: boolean;
  /** Called when a node of this pool joined without archaware's taint. */
  readonly onJoinedUntainted: (pool: string) => void;
};

/** A node is initialized within seconds once its startup taints are removed; one with slow devices may take minutes. */
const STUCK_MINUTES = 5;

/** Creates a watcher of how nodes of pools join, and of nodes that change their architecture, for the length of a term. It writes only Events. */
export function createPoolNodes(options: PoolNodesOptions) {
  const { settings, managesNodes, events, clock, onJoinedUntainted } = options;
  const announcer = createAnnouncer(events, clock);
  const records = createRecords();
  /** The nodes that seem to wait for the removal of the taint, by uid. */
  const waiting = new Map<string, { node: Node; isStuck: boolean; cancel: () => void }>();

  function warn(node: Node, reason: EventReason, note: string): void {
    announcer.report(records.of(node.uid, node.uid), regardingNode(node), { reason, action: 'Tainting', note });
  }

  function sayStuck(node: Node): void {
    const taint = blocksInitialization(node, settings());
    if (taint !== undefined) warn(node, 'NodeNotInitialized', notInitializedNote(node, taint, STUCK_MINUTES));
  }

  function follow(node: Node): void {
    const known = waiting.get(node.uid);
    if (blocksInitialization(node, settings()) === undefined) {
      known?.cancel();
      waiting.delete(node.uid);
    } else if (known === undefined) {
      const entry = { node, isStuck: false, cancel: clock.after(STUCK_MINUTES * 60_000, stuck) };
      waiting.set(node.uid, entry);
      function stuck(): void {
        entry.isStuck = true;
        sayStuck(entry.node);
        // No event need come from a node that waits. The announcer decides whether another Event is due.
        entry.cancel = clock.after(STUCK_MINUTES * 60_000, stuck);
      }
    } else {
      known.node = node;
      if (known.isStuck) sayStuck(node);
    }
  }

  function forget(uid: string): void {
    waiting.get(uid)?.cancel();
    waiting.delete(uid);
    records.forget(uid);
  }

  return {
    /** Starts with the nodes that are there when the term begins. How these joined can no longer be seen. */
    begin(nodes: Iterable<Node>): void {
      for (const node of nodes) follow(node);
    },
    changed({ now, before }: Pick<StoreChange<Node>, 'now' | 'before'>): void {
      if (before !== undefined && before.uid !== now?.uid) forget(before.uid);
      if (now === undefined) return;
      const changedNote = before && architectureChangeNote(before, now);
      if (changedNote !== undefined) warn(now, 'NodeArchitectureChanged', changedNote);
      const joined = before?.uid !== now.uid && managesNodes ? joinedUntainted(now, settings()) : undefined;
      if (joined !== undefined) {
        onJoinedUntainted(joined.pool.name);
        warn(now, 'JoinedUntainted', joinedUntaintedNote(joined.pool, joined.taint, settings()));
      }
      follow(now);
    },
    end(): void {
      for (const { cancel } of waiting.values()) cancel();
    },
  };
}
