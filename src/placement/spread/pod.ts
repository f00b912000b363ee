import { type JsonObject, objectAt } from '../../kit/json.ts';
import type { Placement } from '../decide.ts';
import type { Demands } from '../fit.ts';
import type { PodTemplate } from '../objects/pod.ts';
import { namesOf, type Requirement } from '../patch/affinity.ts';
import { lacking } from '../patch/tolerations.ts';
import { placingFor } from '../placing.ts';
import type { Settings } from '../settings.ts';
import type { HardSpread } from './constraint.ts';
import type { SpreadPod } from './limit.ts';

/**
 * Returns a pod as the scheduler will see it once archaware has placed it. `demands`: those of its author. `decision`: undefined for
 * a pod that archaware leaves alone.
 */
export function spreadPod(
  {
    template,
    demands,
    constraints,
  }: {
    readonly template: Pick<PodTemplate, 'labels'>;
    readonly demands: Demands;
    readonly constraints: readonly HardSpread[];
  },
  decision: Placement | undefined,
  settings: Settings,
): SpreadPod {
  const { labels } = template;
  if (decision === undefined) return { labels, constraints, authored: demands, demands, narrowed: undefined };
  // Nodes that are only preferred keep no pod off.
  const placing = (mode: Settings['mode']) =>
    placingFor(decision, { labels, preferred: undefined, settings: { ...settings, mode } });
  const required = (mode: Settings['mode']) => placing(mode).affinity?.required ?? [];
  const wanted = placing(settings.mode).tolerations;
  const authored = { ...demands, tolerations: [...demands.tolerations, ...lacking(demands.tolerations, wanted)] };
  const inBoth = required('both');
  return {
    labels,
    constraints,
    authored,
    demands: narrowedBy(authored, required(settings.mode)),
    narrowed: inBoth.length === 0 ? undefined : narrowedBy(authored, inBoth),
  };
}

/** Adds requirements as archaware does: to each term that does not mention the label, and never beside a node selector on it. */
function narrowedBy(demands: Demands, requirements: readonly Requirement[]): Demands {
  const added = requirements.filter(
    ({ key }) => !namesOf(key).some((name) => Object.hasOwn(demands.nodeSelector, name)),
  );
  if (added.length === 0) return demands;
  if (demands.terms === undefined) return { ...demands, terms: [{ expressions: added, fields: [] }] };
  const terms = demands.terms.map((term) => {
    const mentioned = term.expressions.map(({ key }) => key);
    const missing = added.filter(({ key }) => !namesOf(key).some((name) => mentioned.includes(name)));
    const isEmpty = term.expressions.length + term.fields.length === 0;
    return isEmpty ? term : { ...term, expressions: [...term.expressions, ...missing] };
  });
  return { ...demands, terms };
}

/**
 * Whether a rollout of this object waits for a new pod before it stops an old one: a Deployment whose `maxUnavailable` comes to 0, as
 * the default of 25 % does up to three replicas (`ResolveFenceposts` of the Deployment controller).
 */
export function rollsAhead(kind: string, spec: JsonObject, replicas: number): boolean {
  const strategy = objectAt(spec, 'strategy');
  if (kind !== 'Deployment' || strategy.type === 'Recreate') return false;
  const { maxUnavailable = '25%', maxSurge = '25%' } = objectAt(strategy, 'rollingUpdate');
  return Math.floor(amount(maxUnavailable, replicas)) === 0 && Math.ceil(amount(maxSurge, replicas)) > 0;
}

/** Returns a number of pods; a percentage is of all of them. */
function amount(value: unknown, of: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d{1,3})%$/.exec(String(value))?.[1];
  return percent === undefined ? 0 : (Number(percent) * of) / 100;
}
