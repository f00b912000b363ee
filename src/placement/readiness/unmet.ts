import { type Demands, meetsTerm, requirementText } from '../fit.ts';
import type { Node } from '../nodes/node.ts';

/** A demand of a pod that a node's labels or name do not meet. */
export type Unmet = { readonly key: string; readonly text: string };

/** Labels by which the kubelet, the cloud or the provisioner describes the node: another value would be false. */
const FACTS: readonly RegExp[] = [
  /^(?:beta\.)?kubernetes\.io\/(?:arch|os|hostname|instance-type)$/,
  /^node\.kubernetes\.io\/(?:instance-type|windows-build)$/,
  /^topology\./,
  /^failure-domain\.beta\.kubernetes\.io\//,
  /^metadata\.name$/,
  // Of node-feature-discovery.
  /^feature\.node\.kubernetes\.io\//,
];

/** Whether a label of a node states a fact that nobody should change. */
export function isFact(label: string): boolean {
  return FACTS.some((fact) => fact.test(label));
}

/**
 * Returns the demands that a node does not meet: of the node selector, and of the affinity term that is easiest to meet (fewest
 * facts, then fewest demands).
 */
export function unmetBy({ nodeSelector, terms }: Demands, node: Pick<Node, 'labels' | 'name'>): Unmet[] {
  const selected = Object.entries(nodeSelector)
    .filter(([key, value]) => !Object.hasOwn(node.labels, key) || node.labels[key] !== value)
    .map(([key, value]) => ({ key, text: `${key}=${value}` }));
  if (terms === undefined || terms.some((term) => meetsTerm(term, node))) return selected;
  const unmet = terms.map(({ expressions, fields }) =>
    [
      ...expressions.filter((each) => !meetsTerm({ expressions: [each], fields: [] }, node)),
      ...fields.filter((each) => !meetsTerm({ expressions: [], fields: [each] }, node)),
    ].map((requirement) => ({ key: requirement.key, text: requirementText(requirement) })),
  );
  const cost = (each: readonly Unmet[]) => each.filter(({ key }) => isFact(key)).length * 100 + each.length;
  const [nearest] = unmet.filter((each) => each.length > 0).sort((one, other) => cost(one) - cost(other));
  return [...selected, ...(nearest ?? [{ key: '', text: 'an empty term, which no node matches' }])];
}
