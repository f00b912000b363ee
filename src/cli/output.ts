import { stringify } from 'yaml';
import { printable } from '../kit/printable.ts';

/** Columns as wide as their widest cell; the last one runs free. Text from outside is escaped. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows].map((row) => row.map((cell) => printable(cell, 4_000)));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** Writes a machine-readable value to stdout, in the form that was asked for. */
export function printValue(value: unknown, form: 'json' | 'yaml'): void {
  process.stdout.write(form === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value));
}
