import type { Outcome } from '../clean/ledger.ts';
import { LEFT_HEADER, leftRows, RESULT_HEADER, resultRows } from '../clean/report.ts';
import type { Context } from './context.ts';
import { printValue, table } from './output.ts';

/** Prints the closing table of `clean`, or the same for machines. `kept`: pods that keep their harmless tolerations. */
export function printOutcome(outcome: Outcome, kept: number, output: Context['output']): void {
  const { removed, left } = outcome;
  if (output !== 'table') {
    printValue({ removed, left }, output);
    return;
  }
  process.stdout.write(table(RESULT_HEADER, resultRows(outcome, kept)));
  if (left.length > 0) process.stdout.write(`\nLeft.\n${table(LEFT_HEADER, leftRows(outcome))}`);
}
