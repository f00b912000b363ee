import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import { taintText } from '../../placement/nodes/managed.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { nodesWithUnmanagedTaints, type UnmanagedNode, unmanagedTaintNote } from '../../placement/nodes/unmanaged.ts';
import type { Settings } from '../../placement/settings.ts';

export type UnmanagedTaintsOptions = {
  readonly nodes: Store<Node>;
  readonly settings: () => Settings;
  /** Whether the node controller runs. */
  readonly managesNodes: boolean;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /** Called with the nodes whenever they or their taints change; not called before there are any. */
  readonly onChange: (found: readonly UnmanagedNode[]) => void;
};

/** Watches for archaware's taints that the configuration does not manage, for the length of a term. */
export type UnmanagedTaints = {
  look(): void;
  /** Checks a little later, once for many changes of nodes. */
  changed(): void;
  end(): void;
};

/** The delay of a check. Nodes change often, and each check reads all of them. */
const LOOK_MS = 5_000;
/** How many nodes get an Event. Each Event says how many other nodes there are. */
const MOST_EVENTS = 3;

/** Creates a watcher; it checks nothing before the first call. */
export function createUnmanagedTaints(options: UnmanagedTaintsOptions): UnmanagedTaints {
  const { nodes, settings, managesNodes, events, clock, onChange } = options;
  let before = '';
  let cancel: (() => void) | undefined;

  function look(): void {
    const found = nodesWithUnmanagedTaints(nodes.values(), settings(), managesNodes);
    found.sort((one, other) => (one.node.name < other.node.name ? -1 : 1));
    const now = found.map(({ node, taints }) => `${node.name} ${taints.map(taintText).join()}`).join('\n');
    if (now === before) return;
    before = now;
    onChange(found);
    const others = Math.max(0, found.length - MOST_EVENTS);
    for (const { node, taints } of found.slice(0, MOST_EVENTS)) {
      events.emit({
        regarding: { apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid },
        type: 'Warning',
        reason: 'UnmanagedTaint',
        action: 'Tainting',
        note: unmanagedTaintNote(taints, settings(), managesNodes, others),
      });
    }
  }

  return {
    look,
    changed() {
      cancel ??= clock.after(LOOK_MS, () => {
        cancel = undefined;
        look();
      });
    },
    end: () => cancel?.(),
  };
}
