import { type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import type { ReportedWorkload, TargetSummary } from './report.ts';

/** What a core, and a gibibyte of memory, cost for an hour, in whatever unit the caller uses. */
export type Price = { readonly cpu: number; readonly memory: number };

/** The prices that the caller gave. */
export type Prices = {
  readonly byArchitecture: ReadonlyMap<string, Price>;
  /** The prices of nodes, by the value of one of their labels, such as the instance type. */
  readonly byLabel?: { readonly label: string; readonly prices: ReadonlyMap<string, Price> };
};

/** The hours of a month: a year has 8,760. */
const HOURS_PER_MONTH = 730;
const GIBIBYTE = 1024 ** 3;

type Costed = Pick<ReportedWorkload, 'cpu' | 'memory'>;

/** Says what workloads cost for a month. */
export type Costs = ReturnType<typeof createCosts>;

/** Creates this from prices and the nodes of the cluster (none: files). */
export function createCosts({ byArchitecture, byLabel }: Prices, nodes: readonly Node[]) {
  const prices = new Map(nodes.map((node) => [node.name, priceOfNode(node)]));
  const targets = new Map<string, Price | undefined>();
  const first = byArchitecture.values().next().value;

  function priceOfNode(node: Node): Price | undefined {
    const own = byLabel === undefined ? undefined : node.labels?.[byLabel.label];
    const labelled = own === undefined ? undefined : byLabel?.prices.get(own);
    return labelled ?? byArchitecture.get(nodeArchitecture(node) ?? '');
  }

  /** The mean of the nodes of a target; undefined: none of them has a price. */
  function meanOf(target: string): Price | undefined {
    const own = nodes.filter((node) => nodeArchitecture(node) === target).flatMap(({ name }) => prices.get(name) ?? []);
    const average = (field: keyof Price) => own.reduce((sum, price) => sum + price[field], 0) / own.length;
    return own.length === 0 ? undefined : { cpu: average('cpu'), memory: average('memory') };
  }

  return {
    /**
     * What a workload costs where its pods run now. What is on no node yet counts like the rest of the workload; where nothing runs, at
     * the first price that was given. Undefined: the price of one of its nodes is not known.
     */
    now(workload: Costed, runsOn: ReadonlyMap<string, number>): number | undefined {
      let [pods, sum] = [0, 0];
      if (nodes.length === 0) return first && monthly(workload, first);
      for (const [node, count] of runsOn) {
        const price = prices.get(node);
        if (price === undefined) return undefined;
        [pods, sum] = [pods + count, sum + count * monthly(workload, price)];
      }
      if (pods > 0) return sum / pods;
      return first && monthly(workload, first);
    },
    /** What it costs once all of it runs on a target; undefined: the target has no price. */
    on(workload: Costed, target: string): number | undefined {
      if (!targets.has(target)) targets.set(target, byArchitecture.get(target) ?? meanOf(target));
      const price = targets.get(target);
      return price && monthly(workload, price);
    },
  };
}

/** What all replicas of a workload request costs for a month at a price. */
function monthly({ cpu, memory }: Costed, price: Price): number {
  return (cpu * price.cpu + (memory / GIBIBYTE) * price.memory) * HOURS_PER_MONTH;
}

/** Money is shown in hundredths. */
export function rounded(amount: number): number {
  return Math.round(amount * 100) / 100;
}

/** What a move to a target would change. Undefined: the target has no price. */
export function costOf(
  workloads: readonly ReportedWorkload[],
  target: string,
  costs: Costs,
): TargetSummary['cost'] | undefined {
  let [now, moved, unpriced] = [0, 0, 0];
  for (const workload of workloads) {
    const there = costs.on(workload, target);
    if (there === undefined) return undefined;
    if (workload.cost === undefined) {
      unpriced += 1;
      continue;
    }
    now += workload.cost;
    moved += workload.verdicts[target]?.state === 'ready' ? there : workload.cost;
  }
  return { now: rounded(now), moved: rounded(moved), saves: rounded(now - moved), unpriced };
}
