import type { Regarding } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/collection.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { few } from '../../placement/reasons.ts';
import { createAnnouncer, regardingDaemonSet, regardingNode } from '../announce.ts';
import type { WritingOptions } from '../controller-options.ts';
import type { Holder } from '../daemonset/unserved.ts';
import { createRecords } from '../memory.ts';

export type HeldBackOptions = Pick<WritingOptions, 'events' | 'clock'> & {
  readonly nodes: Store<Node>;
  /** Returns the DaemonSets that this node must not be tainted for. */
  readonly holders: (node: Node) => readonly Holder[];
  /** Whether the taint would cut off a DaemonSet that was not decided yet, or whose rollout has just begun. Not reported: it is over soon. */
  readonly isCutOffSoon: (node: Node) => boolean;
  readonly taint: () => string;
  /** Has a node decided again. */
  readonly enqueue: (node: string) => void;
};

/** What holds a taint back for a moment, as a DaemonSet that was just created, is not reported. */
const REPORT_MS = 5_000;
/** How often a node that waits is decided again even if nothing is heard of. */
const AGAIN_MS = 60_000;
/** How many nodes get an Event of their own. The Event of the DaemonSet has their number. */
const MOST_EVENTS = 3;

/**
 * Creates the memory of a term of the nodes that stay without the taint because a DaemonSet cannot tolerate it; at first there are none.
 */
export function createHeldBack(options: HeldBackOptions) {
  const { nodes, holders, isCutOffSoon, taint, enqueue, events, clock } = options;
  const announcer = createAnnouncer(events, clock);
  /** Of DaemonSets and of nodes, whose names have no slash. */
  const records = createRecords();
  /** The nodes that wait, each with the DaemonSets that hold it back; none: the reason is over soon. */
  const waiting = new Map<string, readonly Holder[]>();
  const held = () => [...waiting].flatMap(([name, found]) => (found.length > 0 ? name : []));
  let cancel: (() => void) | undefined;

  function recheck(): void {
    for (const name of [...waiting.keys()]) enqueue(name);
  }

  function plan(ms: number): void {
    cancel ??= clock.after(ms, () => {
      cancel = undefined;
      report();
      recheck();
      if (waiting.size > 0) plan(AGAIN_MS);
    });
  }

  function report(): void {
    const say = (key: string, regarding: Regarding, what: string) =>
      announcer.report(records.of(key, regarding.uid), regarding, {
        reason: 'TaintHeldBack',
        action: 'Tainting',
        note: `archaware does not taint ${what}`,
      });
    const names = held().sort();
    const holdersOf = (name: string) => waiting.get(name) ?? [];
    const found = new Map(names.flatMap(holdersOf).map((holder) => [holder.key, holder]));
    for (const [key, { uid, why }] of found) {
      const [namespace = '', name = ''] = key.split('/');
      const cut = names.filter((node) => holdersOf(node).some((holder) => holder.key === key));
      const count = `${cut.length} ${cut.length === 1 ? 'node' : 'nodes'} (${few(cut)})`;
      const loss = `because this DaemonSet would lose its pods there: ${why}`;
      say(key, regardingDaemonSet({ namespace, name, uid }), `${count} with ${taint()}, ${loss}`);
    }
    for (const name of names.slice(0, MOST_EVENTS)) {
      const [uid, [first]] = [nodes.get(name)?.uid, holdersOf(name)];
      if (uid === undefined || first === undefined) continue;
      const others = names.length > 1 ? ` (${names.length} nodes in all)` : '';
      const loss = `because DaemonSet ${first.key} would lose its pod: ${first.why}`;
      say(name, regardingNode({ name, uid }), `this node with ${taint()}${others}, ${loss}`);
    }
  }

  function forget(name: string): void {
    if (waiting.delete(name)) records.forget(name);
  }

  return {
    /** Whether a node may be tainted. If not, it is remembered, and reported if that lasts. */
    allows(node: Node): boolean {
      const found = holders(node);
      if (found.length === 0 && !isCutOffSoon(node)) {
        waiting.delete(node.name);
        return true;
      }
      waiting.set(node.name, found);
      plan(REPORT_MS);
      return false;
    },
    /** The node waits no longer for a taint. */
    forget,
    /** Has every node that waits decided again. */
    recheck,
    count: (): number => held().length,
    /** Whether a node stays untainted, or a DaemonSet (`namespace/name`) is the reason for one. */
    concerns: (key: string): boolean =>
      held().includes(key) || [...waiting.values()].flat().some((holder) => holder.key === key),
    end: (): void => cancel?.(),
  };
}
