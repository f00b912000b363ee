import { architecturesOf, type Node } from '../../placement/nodes/node.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import { asOurs, tolerates } from '../../placement/patch/tolerations.ts';
import { wantedTolerations } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';
import { fitsOneOf } from '../../placement/wrong-node/may-evict.ts';

/** Returns where a new pod like one on a wrong node would go: no node takes it, it may come back to such a node, or (undefined) a right one. */
export function nextNode(
  { tolerations = [], written, selects }: Pick<Pod, 'tolerations' | 'written' | 'selects'>,
  architectures: readonly string[],
  settings: Pick<Settings, 'mode' | 'taints'>,
  nodes: readonly Node[],
): 'nowhere' | 'back' | undefined {
  // What archaware gave to the pod is not in its template.
  const own = tolerations.filter((entry) => !written?.tolerations || !asOurs(entry, settings.taints));
  const terms = written?.architectures === undefined ? selects?.terms : undefined;
  const all = [...own, ...wantedTolerations(settings, architectures)];
  const demands = { nodeSelector: selects?.nodeSelector ?? {}, terms, nodeName: undefined, tolerations: all };
  if (!fitsOneOf(nodes, architectures, demands)) return 'nowhere';
  if (settings.mode !== 'taints') return undefined;
  const isTolerated = (value: string) => own.some((entry) => tolerates(entry, { ...settings.taints, value }));
  const others = architecturesOf(nodes).filter((value) => !architectures.includes(value) && isTolerated(value));
  return fitsOneOf(nodes, others, demands) ? 'back' : undefined;
}
