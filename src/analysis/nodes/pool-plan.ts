import { type JsonObject, listAt, objectAt, stringsAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, ARCHITECTURE_LABELS, OLD_ARCHITECTURE_LABEL } from '../../names.ts';
import { type Demands, obstaclesTo } from '../../placement/fit.ts';
import { isOfKind, type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { type PoolSettings, poolOf, poolText } from '../../placement/nodes/pools.ts';
import type { Taint } from '../../placement/patch/tolerations.ts';
import { usesTaints } from '../../placement/placing.ts';
import { isLabelKnown, type NodePool, type NodePoolProblem, nodePoolProblems, readNodePool } from './node-pools.ts';

/** A pod of today, as far as it decides whether a pool could run it. */
export type PooledPod = {
  /** Where its images run; undefined: archaware leaves it alone, so nothing is known. Empty: nowhere, or not known yet. */
  readonly architectures: readonly string[] | undefined;
  readonly demands: Demands;
};

/** A step that brings a pool in line with the configuration, to be reviewed and applied by hand. */
export type PoolStep =
  | { readonly kind: 'create'; readonly note: string; readonly manifest: JsonObject }
  | { readonly kind: 'patch'; readonly note: string; readonly patch: readonly JsonObject[] };

/** What `plan --pools` says of a pool. */
export type PoolPlan = {
  readonly kind: string;
  readonly name: string;
  /** Absent: the pool names none. */
  readonly architectures?: readonly string[];
  /** How many of the pods of today could run there. Resources are not counted. */
  readonly couldRun: number;
  readonly pods: number;
  readonly problems: readonly NodePoolProblem[];
  /** In this order; empty: nothing to do. */
  readonly steps: readonly PoolStep[];
};

/** Plans for Karpenter's NodePools (as the API server sent them), and for the pools that only nodes name. */
export function planPools(
  nodePools: readonly JsonObject[],
  nodes: readonly Node[],
  pods: readonly PooledPod[],
  settings: PoolSettings,
): PoolPlan[] {
  const own = [...new Set(nodes.flatMap((node) => nodeArchitecture(node) ?? []))].sort();
  const read = nodePools.flatMap((object): PoolPlan[] => {
    const pool = readNodePool(object);
    if (pool === undefined) return [];
    const { name, architectures } = pool;
    const places = (architectures ?? own).map((each) => placeOf(pool, each));
    const problems = nodePoolProblems(pool, settings);
    const most = commonest(nodes.filter((node) => poolOf(node)?.kind === 'NodePool' && poolOf(node)?.name === name));
    return [
      {
        ...{ kind: 'NodePool', name, ...(architectures && { architectures }) },
        couldRun: pods.filter((pod) => places.some((place) => couldRun(pod, place, pool, settings))).length,
        pods: pods.length,
        problems,
        steps: problems.flatMap((problem) => stepsFor(problem, object, pool, architectures ?? own, most, settings)),
      },
    ];
  });
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const pool = poolOf(node);
    if (pool === undefined || pool.kind === 'NodePool') continue;
    groups.set(poolText(pool), [...(groups.get(poolText(pool)) ?? []), node]);
  }
  const others = [...groups.values()].flatMap((members): PoolPlan[] => {
    const [pool] = members.flatMap((node) => poolOf(node) ?? []);
    if (pool === undefined) return [];
    const places = members.map((node) => ({
      ...node,
      unschedulable: false,
      architecture: nodeArchitecture(node) ?? '',
    }));
    const architectures = [...new Set(places.map(({ architecture }) => architecture))].sort();
    return [
      {
        ...{ kind: pool.kind, name: pool.name, architectures, pods: pods.length, problems: [], steps: [] },
        couldRun: pods.filter((pod) => places.some((place) => couldRun(pod, place, undefined, settings))).length,
      },
    ];
  });
  return [...read, ...others].sort((one, other) => (one.kind + one.name < other.kind + other.name ? -1 : 1));
}

type PoolPlace = Pick<Node, 'name' | 'labels' | 'taints' | 'unschedulable'> & { readonly architecture: string };

function placeOf({ labels, taints }: NodePool, architecture: string): PoolPlace {
  const own = { [ARCHITECTURE_LABEL]: architecture, [OLD_ARCHITECTURE_LABEL]: architecture };
  return { name: '', labels: { ...labels, ...own }, taints: [...taints], unschedulable: false, architecture };
}

/** Whether a pod could run on such a node. What is decided when the node is created (a zone, a type) counts as fitting. */
function couldRun(
  { architectures, demands }: PooledPod,
  place: PoolPlace,
  pool: NodePool | undefined,
  settings: PoolSettings,
): boolean {
  if (architectures !== undefined && !architectures.includes(place.architecture)) return false;
  // A pod that archaware serves tolerates its taint.
  const isOurs = isOfKind(settings.taints);
  const taints =
    architectures === undefined || !usesTaints(settings) ? place.taints : place.taints?.filter((each) => !isOurs(each));
  const knows = (label: string) =>
    ARCHITECTURE_LABELS.includes(label) || pool === undefined || isLabelKnown(pool, label);
  const terms = demands.terms?.map((term) => ({
    ...term,
    expressions: term.expressions.filter((each) => knows(each.key)),
  }));
  const isOpen = terms?.some(({ expressions, fields }) => expressions.length + fields.length === 0) === true;
  const nodeSelector = Object.fromEntries(Object.entries(demands.nodeSelector).filter(([label]) => knows(label)));
  const known = { ...demands, nodeName: undefined, nodeSelector, terms: isOpen ? undefined : terms };
  return obstaclesTo(known, { ...place, taints }).length === 0;
}

function commonest(nodes: readonly Node[]): string | undefined {
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const architecture = nodeArchitecture(node);
    if (architecture !== undefined) counts.set(architecture, (counts.get(architecture) ?? 0) + 1);
  }
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}

const TEMPLATE = '/spec/template/spec';

/** Returns the steps for a problem. `most`: the architecture that most nodes of the pool have, which the pool itself keeps. */
function stepsFor(
  { problem }: NodePoolProblem,
  object: JsonObject,
  { name }: NodePool,
  architectures: readonly string[],
  most: string | undefined,
  settings: PoolSettings,
): PoolStep[] {
  const { key, effect } = settings.taints;
  const spec = objectAt(objectAt(objectAt(object, 'spec'), 'template'), 'spec');
  const taintOf = (value: string): Taint => ({ key, value, effect });
  const at = (field: string) =>
    (listAt(spec, field) ?? []).findIndex((each) => each.key === key && (field !== 'taints' || each.effect === effect));
  const patch = (note: string, ...operations: readonly JsonObject[]): PoolStep => ({
    kind: 'patch',
    note: `${note}; Karpenter replaces the nodes of the pool`,
    patch: operations,
  });
  const first = most !== undefined && architectures.includes(most) ? most : (architectures[0] ?? '');
  switch (problem) {
    case 'startup-taint':
      return [
        patch('without the startup taint', { op: 'remove', path: `${TEMPLATE}/startupTaints/${at('startupTaints')}` }),
      ];
    case 'taint-missing':
      return [patch('with its taint', setTaint(spec, taintOf(first)))];
    case 'taint-of-another-architecture':
      return [patch(`with the taint of ${first}`, setTaint(spec, taintOf(first)))];
    case 'taint-not-tolerated':
      return [patch('without the taint', { op: 'remove', path: `${TEMPLATE}/taints/${at('taints')}` })];
    case 'several-architectures': {
      const others = architectures.filter((each) => each !== first);
      const weight = weightOf(object);
      return [
        ...others.map(
          (each): PoolStep => ({
            kind: 'create',
            note: `a NodePool for ${each}, with its taint; raise its weight above ${weight} where pods should go there first`,
            manifest: copyFor(object, `${name}-${each}`, taintOf(each), weight - 1),
          }),
        ),
        patch(`only ${first}, with its taint`, onlyFor(spec, first), setTaint(spec, taintOf(first)), {
          op: 'add',
          path: '/spec/weight',
          value: weight,
        }),
      ];
    }
    default:
      return problem satisfies never;
  }
}

/** A node has one taint of a key and an effect. */
function setTaint(spec: JsonObject, taint: Taint): JsonObject {
  const taints = listAt(spec, 'taints');
  if (taints === undefined) return { op: 'add', path: `${TEMPLATE}/taints`, value: [taint] };
  const index = taints.findIndex(isOfKind(taint));
  return index < 0
    ? { op: 'add', path: `${TEMPLATE}/taints/-`, value: taint }
    : { op: 'replace', path: `${TEMPLATE}/taints/${index}`, value: taint };
}

/** A pool without a weight has 0, and Karpenter tries larger weights first. */
function weightOf(object: JsonObject): number {
  const { weight } = objectAt(object, 'spec');
  return typeof weight === 'number' && weight > 1 ? weight : 10;
}

function requirementFor(architecture: string): JsonObject {
  return { key: ARCHITECTURE_LABEL, operator: 'In', values: [architecture] };
}

function isOfArchitecture({ key }: JsonObject): boolean {
  return ARCHITECTURE_LABELS.includes(String(key));
}

function onlyFor(spec: JsonObject, architecture: string): JsonObject {
  const index = (listAt(spec, 'requirements') ?? []).findIndex(isOfArchitecture);
  const value = requirementFor(architecture);
  if (index >= 0) return { op: 'replace', path: `${TEMPLATE}/requirements/${index}`, value };
  return listAt(spec, 'requirements') === undefined
    ? { op: 'add', path: `${TEMPLATE}/requirements`, value: [value] }
    : { op: 'add', path: `${TEMPLATE}/requirements/-`, value };
}

function copyFor(object: JsonObject, name: string, taint: Taint, weight: number): JsonObject {
  const spec = objectAt(object, 'spec');
  const template = objectAt(spec, 'template');
  const inner = objectAt(template, 'spec');
  const requirements = (listAt(inner, 'requirements') ?? []).filter((each) => !isOfArchitecture(each));
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name, labels: stringsAt(objectAt(object, 'metadata'), 'labels') },
    spec: {
      ...spec,
      weight,
      template: {
        ...template,
        spec: {
          ...inner,
          requirements: [requirementFor(taint.value), ...requirements],
          taints: [...(listAt(inner, 'taints') ?? []).filter((each) => !isOfKind(taint)(each)), taint],
          startupTaints: listAt(inner, 'startupTaints')?.filter(({ key }) => key !== taint.key),
        },
      },
    },
  };
}
