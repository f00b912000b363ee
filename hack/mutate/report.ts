/** A table of the folders, and the mutants that lived. */
import { FOLDER_NAMES } from './folders.ts';
import type { Mutant } from './mutants.ts';
import type { Judged, Verdict } from './runner.ts';

export type Row = Mutant & (Judged | { readonly verdict: 'excluded' });

export type FolderCounts = {
  readonly folder: string;
  /** How many mutants the folder has. */
  readonly all: number;
  /** How many were drawn and count. */
  readonly drawn: number;
  readonly killed: number;
  readonly killedByTimeout: number;
  readonly survived: number;
  readonly notReached: number;
  readonly excluded: number;
  /** Percent of those drawn that were killed, in either way. */
  readonly score: number;
};

export function countFolders(mutants: readonly Mutant[], rows: readonly Row[]): readonly FolderCounts[] {
  return FOLDER_NAMES.flatMap((folder) => {
    const own = rows.filter((row) => row.folder === folder);
    if (own.length === 0) return [];
    const count = (verdict: Verdict | 'excluded') => own.filter((row) => row.verdict === verdict).length;
    const [killed, killedByTimeout, excluded] = [count('killed'), count('killed by timeout'), count('excluded')];
    const drawn = own.length - excluded;
    return {
      folder,
      all: mutants.filter((mutant) => mutant.folder === folder).length,
      drawn,
      killed,
      killedByTimeout,
      survived: count('survived'),
      notReached: count('not reached'),
      excluded,
      score: drawn === 0 ? 0 : Math.round((1000 * (killed + killedByTimeout)) / drawn) / 10,
    };
  });
}

export function printTable(counts: readonly FolderCounts[]): string {
  const head = ['folder', 'mutants', 'drawn', 'killed', 'by timeout', 'survived', 'not reached', 'excluded', 'score'];
  const lines = counts.map((each) => [
    each.folder,
    String(each.all),
    String(each.drawn),
    String(each.killed + each.killedByTimeout),
    String(each.killedByTimeout),
    String(each.survived),
    String(each.notReached),
    String(each.excluded),
    `${each.score.toFixed(1)} %`,
  ]);
  const widths = head.map((title, column) => Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)));
  return [head, ...lines]
    .map((line) =>
      line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
    )
    .map((line) => line.join('  '))
    .join('\n');
}

export function printLiving(rows: readonly Row[]): string {
  return rows
    .filter(({ verdict }) => verdict === 'survived' || verdict === 'not reached')
    .sort((one, other) => (one.file === other.file ? one.line - other.line : one.file < other.file ? -1 : 1))
    .map(
      (row) =>
        `${row.file}:${row.line} ${row.verdict} (${row.kind})\n${marked('-', row.original)}\n${marked('+', row.replacement)}`,
    )
    .join('\n');
}

function marked(sign: string, text: string): string {
  const lines = text.split('\n').map((line) => `  ${sign} ${line}`);
  return lines.length > 6
    ? [...lines.slice(0, 4), `  ${sign} … ${lines.length - 4} lines more`].join('\n')
    : lines.join('\n');
}
