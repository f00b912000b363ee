import type { Context } from '../app/context.ts';
import type { CleanOutcome } from '../clean/ledger.ts';
import { LEFT_HEADER, leftRows, RESULT_HEADER, resultRows } from '../clean/report.ts';
import type { TaintingPool } from '../placement/nodes/tainting-pools.ts';
import { printValue, table } from './output.ts';

/**
 * Prints the closing table of `clean`, or the same in a machine-readable form. `kept`: the number of pods that keep harmless
 * tolerations. `pools`: the node pools whose next nodes may have the taint again.
 */
export function printOutcome(
  outcome: CleanOutcome,
  kept: number,
  pools: readonly TaintingPool[],
  output: Context['output'],
): void {
  const { removed, left } = outcome;
  if (output !== 'table') {
    printValue({ removed, left, ...(pools.length > 0 ? { pools } : {}) }, output);
    return;
  }
  process.stdout.write(table(RESULT_HEADER, resultRows(outcome, kept)));
  if (left.length > 0) process.stdout.write(`\nLeft.\n${table(LEFT_HEADER, leftRows(outcome))}`);
  if (pools.length > 0) process.stdout.write(`\nPools whose next nodes may be tainted again.\n${poolTable(pools)}`);
}

function poolTable(pools: readonly TaintingPool[]): string {
  const rows = pools.map((pool) => [pool.kind, pool.name, String(pool.nodes), pool.certain ? 'yes' : 'perhaps']);
  return table(['KIND', 'NAME', 'TAINTED NODES', 'SETS THE TAINT'], rows);
}
