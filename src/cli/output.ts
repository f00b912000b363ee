import { stringify } from 'yaml';
import type { Platform } from '../kit/platform.ts';
import { printable } from '../kit/printable.ts';

/** Returns a table whose columns are as wide as their widest cell, except the last one. Text from outside is escaped. */
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

/** Writes a value to stdout in a machine-readable form. */
export function printValue(value: unknown, form: 'json' | 'yaml'): void {
  process.stdout.write(form === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value));
}

/** Returns a platform as people write it: `linux/arm64/v8`. */
export function platformText({ os, architecture, variant }: Platform): string {
  return [os, architecture, ...(variant ? [variant] : [])].join('/');
}
