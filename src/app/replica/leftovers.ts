import { nodesWithUnmanagedTaints } from '../../placement/nodes/unmanaged-taints.ts';
import { onlyObserves } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import type { Watches } from '../watches.ts';

/**
 * Returns what an earlier mode left in a cluster that this process only observes: taints, which nobody removes, and gates, which
 * nobody releases. Empty in every other mode. A replica with such leftovers is not ready, so that a rollout to this mode stops.
 */
export function leftovers(
  { nodes, pods }: Pick<Watches, 'nodes' | 'pods'>,
  settings: Settings,
  gatedElsewhere: number,
): string[] {
  if (!onlyObserves(settings)) return [];
  const tainted = nodesWithUnmanagedTaints(nodes.store.values(), settings, false).length;
  let gated = gatedElsewhere;
  for (const pod of pods.store.values()) if (pod.gated !== undefined) gated++;
  return [
    ...(tainted > 0 ? [`taints of archaware on ${tainted} node(s): run archaware-controller clean`] : []),
    ...(gated > 0 ? [`the gate of archaware on ${gated} pod(s): run archaware-controller clean`] : []),
  ];
}
