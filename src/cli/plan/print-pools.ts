import { stringify } from 'yaml';
import { type PooledPod, type PoolPlan, type PoolStep, planPools } from '../../analysis/nodes/pool-plan.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { POOL_PAGE } from '../../placement/nodes/pools.ts';
import type { Settings } from '../../placement/settings.ts';
import { valueText } from '../output.ts';
import { readNodePools } from '../survey/survey.ts';
import type { DecidedAll } from './decide-all.ts';
import type { PodSpecs } from './pod-specs.ts';

/**
 * Prints, for each node pool, how many of the pods of today could run there, and the steps that bring it in line with the
 * configuration. Nothing is written. Exit code 2 if there are steps.
 */
export async function printPools(
  { output, print, note, signal }: Context,
  client: ApiClient,
  { watches, fromImages }: DecidedAll,
  specs: PodSpecs,
  settings: Settings,
): Promise<number> {
  const objects = await readNodePools(client, (object) => object, note, signal);
  if (objects === undefined)
    note('NodePools of Karpenter: none, or they may not be read; other pools are known by the labels of their nodes');
  const pods = [...fromImages.pods].flatMap(([key, { decision }]): PooledPod[] => {
    const { demands } = specs.get(watches.pods.store.get(key)?.uid ?? '') ?? {};
    if (demands === undefined) return [];
    if (decision.kind === 'skip') return [{ architectures: undefined, demands }];
    return [{ architectures: decision.kind === 'place' ? decision.architectures : [], demands }];
  });
  const pools = planPools(objects ?? [], [...watches.nodes.store.values()], pods, settings);
  const text = pools.length === 0 ? 'No node belongs to a pool.\n' : pools.map(poolText).join('\n');
  print(output === 'table' ? text : valueText({ pools }, output));
  return pools.some(({ steps }) => steps.length > 0) ? EXIT.found : EXIT.done;
}

function poolText({ kind, name, architectures, couldRun, pods, problems, steps }: PoolPlan): string {
  const share = pods === 0 ? 100 : Math.floor((couldRun / pods) * 100);
  const runs = architectures === undefined ? 'any architecture' : architectures.join(', ');
  const lines = [
    `${kind} ${name} (${runs}): ${couldRun} of ${pods} pods could run there (${share} %).`,
    ...problems.map((problem) => `  ${problem.severity}: it ${problem.note}`),
    ...(kind === 'NodePool' ? [] : [`  Its template should have the taint of its architecture: ${POOL_PAGE}`]),
  ].map((line) => printable(line, 4_000));
  const ready = steps.map((step) => stepText(name, step));
  return [`${lines.join('\n')}\n`, ...ready].join('\n');
}

/** A step as something to paste into a shell. */
function stepText(name: string, step: PoolStep): string {
  const heading = `# ${printable(step.note, 400)}\n`;
  if (step.kind === 'create') return `${heading}kubectl apply -f - <<'YAML'\n${stringify(step.manifest)}YAML\n`;
  const patch = JSON.stringify(step.patch).replaceAll("'", "'\\''");
  return `${heading}kubectl patch nodepool ${name} --type=json -p '${patch}'\n`;
}
