import { isObject, type JsonObject, listAt, numberAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { matchesSelector, type Selector } from '../../kit/selector.ts';

/**
 * A topology spread constraint that the scheduler enforces (`whenUnsatisfiable: DoNotSchedule`), with Kubernetes' defaults filled
 * in. `ScheduleAnyway` only orders the nodes that fit, so it keeps no pod from running.
 */
export type HardSpread = {
  /** The node label whose values are the domains. */
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  /** Which pods of the namespace count; undefined: none. */
  readonly selector: Selector | undefined;
  /** `nodeAffinityPolicy: Honor`, the default: nodes that the pod's selector and affinity exclude do not count. */
  readonly honorsAffinity: boolean;
  /** `nodeTaintsPolicy: Honor`; the default is Ignore: nodes whose taints keep the pod off count as well. */
  readonly honorsTaints: boolean;
  /** Whether pods of another revision of a Deployment do not count (`matchLabelKeys: [pod-template-hash]`). */
  readonly isByRevision: boolean;
};

/** A pod carries its labels in each of its selectors, but hardly more than two of these constraints. */
const MOST_CONSTRAINTS = 16;
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Reads the hard constraints of a pod's or a template's `spec`. `labels`: its labels, for `matchLabelKeys`. Follows
 * `filterTopologySpreadConstraints` of the scheduler's plug-in. Never throws.
 */
export function readHardSpread(spec: JsonObject, labels: Readonly<Record<string, string>>): readonly HardSpread[] {
  return (listAt(spec, 'topologySpreadConstraints') ?? [])
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule')
    .slice(0, MOST_CONSTRAINTS)
    .map((constraint) => {
      const keys = Array.isArray(constraint.matchLabelKeys) ? constraint.matchLabelKeys.map(String) : [];
      return {
        topologyKey: stringAt(constraint, 'topologyKey') ?? '',
        maxSkew: numberAt(constraint, 'maxSkew') ?? 1,
        minDomains: numberAt(constraint, 'minDomains') ?? 1,
        selector: selectorOf(constraint, keys, labels),
        honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
        honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
        isByRevision: keys.includes(TEMPLATE_HASH),
      };
    });
}

/** Whether a pod with these labels counts for the constraint. */
export function counts({ selector }: Pick<HardSpread, 'selector'>, labels: Readonly<Record<string, string>>): boolean {
  return selector !== undefined && matchesSelector(selector, labels);
}

/** A constraint without a selector counts no pod, and neither does one with an empty selector: the scheduler says 0 for it. */
function selectorOf(
  constraint: JsonObject,
  keys: readonly string[],
  labels: Readonly<Record<string, string>>,
): Selector | undefined {
  if (!isObject(constraint.labelSelector)) return undefined;
  const given = objectAt(constraint, 'labelSelector');
  const merged = keys.flatMap((key) => (Object.hasOwn(labels, key) ? [[key, labels[key] ?? ''] as const] : []));
  const equal = [...Object.entries(stringsAt(given, 'matchLabels')), ...merged];
  const selector: Selector = [
    ...equal.map(([key, value]) => ({ key, operator: 'in' as const, values: [value] })),
    ...(listAt(given, 'matchExpressions') ?? []).flatMap((expression) => {
      const operator = OPERATORS[stringAt(expression, 'operator') ?? ''];
      const values = Array.isArray(expression.values) ? expression.values.map(String) : [];
      return operator === undefined ? [] : [{ key: stringAt(expression, 'key') ?? '', operator, values }];
    }),
  ];
  return selector.length === 0 ? undefined : selector;
}

const OPERATORS: Readonly<Record<string, Selector[number]['operator']>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: 'absent',
};
