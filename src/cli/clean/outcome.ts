import type { TaintingPool } from '../../analysis/nodes/tainting-pools.ts';
import type { Context } from '../../app/surroundings.ts';
import type { CleanOutcome } from '../../clean/outcomes.ts';
import {
  LEFT_HEADER,
  leftRows,
  PLAN_HEADER,
  PLANNED_HEADER,
  RESULT_HEADER,
  type Rows,
  resultRows,
} from '../../clean/rows.ts';
import { counted, table, valueText } from '../output.ts';
import { createPaint, type Tone } from '../paint.ts';

type Work = {
  /** The number of pods that keep harmless tolerations or affinity because of `--pods keep`. */
  readonly unlisted: number;
  /** The steps of a dry run: nothing was done, and the reasons say what would be. */
  readonly steps: Rows | undefined;
  /** Nothing was found, but perhaps only because the configuration is not known. */
  readonly isBlind: boolean;
  /** The work ended before the last look at the cluster. */
  readonly isBrokenOff: boolean;
};

/**
 * Prints the verdict and the closing table of `clean`, or the same in a machine-readable form. `pools`: the node pools whose next nodes
 * may have the taint again.
 */
export function printOutcome(
  outcome: CleanOutcome,
  work: Work,
  pools: readonly TaintingPool[],
  context: Pick<Context, 'output' | 'columns' | 'colors' | 'print'>,
): void {
  const { output, columns, print } = context;
  const { unlisted, steps } = work;
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
  const paint = createPaint(context);
  const [tone, text] = verdictOf(outcome, work);
  print(`${paint.marks ? `${paint.mark(tone)} ` : ''}${paint.bold(text)}\n\n`);
  const [header, rows] = steps ? [PLAN_HEADER, steps] : [RESULT_HEADER, resultRows(outcome, unlisted)];
  print(table(header, rows, columns));
  const title = steps ? 'What clean would do.' : 'Left.';
  if (left.length > 0) print(`\n${title}\n${table(steps ? PLANNED_HEADER : LEFT_HEADER, leftRows(left), columns)}`);
  if (kept.length > 0)
    print(`\nKept: what archaware added to them is harmless.\n${table(LEFT_HEADER, leftRows(kept), columns)}`);
  if (pools.length > 0) print(`\nPools whose next nodes may be tainted again.\n${poolTable(pools, columns)}`);
}

/** Returns what is left of archaware, in one sentence. */
function verdictOf(
  { remaining, left, kept }: CleanOutcome,
  { unlisted, steps, isBlind, isBrokenOff }: Work,
): readonly [Tone, string] {
  const sets = kept.filter(({ kind }) => kind === 'DaemonSet').length;
  const harmless = [[kept.length - sets + unlisted, 'pod'] as const, [sets, 'DaemonSet'] as const].flatMap(
    ([many, of]) => (many === 0 ? [] : [counted(many, of)]),
  );
  const but = harmless.length === 0 ? '' : ` but harmless tolerations or affinity of ${harmless.join(' and ')}`;
  if (steps !== undefined) {
    if (remaining.controllers > 0) return ['bad', 'clean would refuse: archaware runs, and would undo its work.'];
    return left.length === 0
      ? ['good', `There is nothing to remove${but}.`]
      : ['warning', `clean would remove what archaware wrote to ${counted(left.length, 'object')}.`];
  }
  if (left.length > 0) return ['bad', `${counted(left.length, 'object')} left: the reasons are below.`];
  if (isBrokenOff)
    return ['bad', 'clean did not end: what it found is removed, but it did not look again. Run it again.'];
  return isBlind
    ? ['warning', 'Nothing was found, but perhaps not everything.']
    : ['good', `Nothing of archaware is left${but}.`];
}

function poolTable(pools: readonly TaintingPool[], columns: number | undefined): string {
  const rows = pools.map((pool) => [pool.kind, pool.name, String(pool.nodes), pool.certain ? 'yes' : 'perhaps']);
  return table(['KIND', 'NAME', 'TAINTED NODES', 'SETS THE TAINT'], rows, columns);
}
