import { type Demands, repellingTaints } from '../../placement/fit.ts';
import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';

/**
 * Groups the nodes that look the same to the pod: they have the same architecture, taints that keep pods away, and labels that its node
 * selector or affinity mentions. Sorted by architecture and name; `example`: one of the nodes.
 */
export function groupNodes(nodes: readonly Node[], demands: Demands) {
  const terms = demands.terms ?? [];
  const keys = new Set([
    ...Object.keys(demands.nodeSelector),
    ...terms.flatMap(({ expressions }) => expressions.map(({ key }) => key)),
  ]);
  const singled = new Set(terms.flatMap(({ fields }) => fields.flatMap(({ values }) => values)));
  if (demands.nodeName !== undefined) singled.add(demands.nodeName);
  const seen = (example: Node) => {
    const labels = Object.entries(example.labels).filter(([key]) => keys.has(key));
    return {
      architecture: nodeArchitecture(example),
      unschedulable: example.unschedulable,
      taints: repellingTaints(example),
      labels: Object.fromEntries(labels.sort()),
    };
  };
  const groups = new Map<string, ReturnType<typeof seen> & { names: string[]; example: Node }>();
  for (const node of [...nodes].sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const own = seen(node);
    const id = JSON.stringify([own, singled.has(node.name) && node.name]);
    const known = groups.get(id);
    if (known) known.names.push(node.name);
    else groups.set(id, { names: [node.name], ...own, example: node });
  }
  const order = ({ architecture = '~', names }: { architecture: string | undefined; names: string[] }) =>
    `${architecture} ${names[0]}`;
  return [...groups.values()].sort((one, other) => (order(one) < order(other) ? -1 : 1));
}
