import type { Context } from '../../app/context.ts';
import type { CleanOutcome } from '../../clean/ledger.ts';
import { LEFT_HEADER, leftRows, RESULT_HEADER, resultRows } from '../../clean/report.ts';
import type { TaintingPool } from '../../placement/nodes/tainting-pools.ts';
import { table, valueText } from '../output.ts';

/**
 * Prints the closing table of `clean`, or the same in a machine-readable form. `kept`: the number of pods that keep harmless
 * tolerations. `pools`: the node pools whose next nodes may have the taint again.
 */
export function printOutcome(
  outcome: CleanOutcome,
  kept: number,
  pools: readonly TaintingPool[],
  { output, columns, print }: Pick<Context, 'output' | 'columns' | 'print'>,
): void {
  const { removed, left } = outcome;
  if (output !== 'table') {
    print(valueText({ removed, left, ...(pools.length > 0 ? { pools } : {}) }, output));
    return;
  }
  print(table(RESULT_HEADER, resultRows(outcome, kept), columns));
  if (left.length > 0) print(`\nLeft.\n${table(LEFT_HEADER, leftRows(outcome), columns)}`);
  if (pools.length > 0) print(`\nPools whose next nodes may be tainted again.\n${poolTable(pools, columns)}`);
}

function poolTable(pools: readonly TaintingPool[], columns: number | undefined): string {
  const rows = pools.map((pool) => [pool.kind, pool.name, String(pool.nodes), pool.certain ? 'yes' : 'perhaps']);
  return table(['KIND', 'NAME', 'TAINTED NODES', 'SETS THE TAINT'], rows, columns);
}
