import type { Context } from '../../app/surroundings.ts';
import type { CleanOutcome } from '../../clean/outcomes.ts';
import { LEFT_HEADER, leftRows, PLANNED_HEADER, RESULT_HEADER, resultRows } from '../../clean/rows.ts';
import type { TaintingPool } from '../../placement/nodes/tainting-pools.ts';
import { table, valueText } from '../output.ts';

/**
 * Prints the closing table of `clean`, or the same in a machine-readable form. `unlisted`: the number of pods that keep harmless
 * tolerations or affinity because of `--pods keep`. `planned`: nothing was done, and the reasons say what would be. `pools`: the node pools whose next nodes may have the taint again.
 */
export function printOutcome(
  outcome: CleanOutcome,
  { unlisted, planned }: { readonly unlisted: number; readonly planned: boolean },
  pools: readonly TaintingPool[],
  { output, columns, print }: Pick<Context, 'output' | 'columns' | 'print'>,
): void {
  const { removed, left, kept } = outcome;
  if (output !== 'table') {
    print(
      valueText(
        { removed, left, ...(kept.length > 0 ? { kept } : {}), ...(pools.length > 0 ? { pools } : {}) },
        output,
      ),
    );
    return;
  }
  print(table(RESULT_HEADER, resultRows(outcome, unlisted), columns));
  const title = planned ? 'What clean would do.' : 'Left.';
  if (left.length > 0) print(`\n${title}\n${table(planned ? PLANNED_HEADER : LEFT_HEADER, leftRows(left), columns)}`);
  if (kept.length > 0)
    print(`\nKept: what archaware added to them is harmless.\n${table(LEFT_HEADER, leftRows(kept), columns)}`);
  if (pools.length > 0) print(`\nPools whose next nodes may be tainted again.\n${poolTable(pools, columns)}`);
}

function poolTable(pools: readonly TaintingPool[], columns: number | undefined): string {
  const rows = pools.map((pool) => [pool.kind, pool.name, String(pool.nodes), pool.certain ? 'yes' : 'perhaps']);
  return table(['KIND', 'NAME', 'TAINTED NODES', 'SETS THE TAINT'], rows, columns);
}
