import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Store } from '../../kube/watch/store.ts';
import { type Node, taintText } from '../../placement/nodes/node.ts';
import {
  nodesWithUnmanagedTaints,
  type UnmanagedNode,
  unmanagedTaintNote,
} from '../../placement/nodes/unmanaged-taints.ts';
import type { Settings } from '../../placement/settings.ts';

export type UnmanagedTaintsOptions = {
  readonly nodes: Store<Node>;
  readonly settings: () => Settings;
  /** Whether the loop for nodes runs. */
  readonly managesNodes: boolean;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  /** Called with what there is whenever that is something else than before; first where there is anything. */
  readonly onChange: (found: readonly UnmanagedNode[]) => void;
};

/** Watches for taints of archaware's that the configuration does not manage, for the length of a term. */
export type UnmanagedTaints = {
  /** Looks now. */
  look(): void;
  /** A node changed: looks a little later, once for many changes. */
  changed(): void;
  /** Looks no more. */
  end(): void;
};

/** Nodes change often, and all of them are looked at together. */
const LOOK_MS = 5_000;
/** No more nodes get an Event of their own: each says how many others there are. */
const MOST_EVENTS = 3;

/** Creates it; nothing is looked at before the first call. */
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
