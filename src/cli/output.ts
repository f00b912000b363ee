import { Document, Scalar, visit } from 'yaml';
import type { Platform } from '../kit/platform.ts';
import { escaped, printable } from '../kit/printable.ts';
import type { Inside } from '../oci/deep/look-inside.ts';
import type { NamedObject } from '../placement/objects/kinds.ts';

/** A column is not made narrower than this, so that a name can still be recognised. */
const LEAST_COLUMN = 12;
/** The last column gets at least the width of its longest word before other columns are made narrower, within these limits. */
const LEAST_LAST = 28;
const MOST_LAST = 40;
/** A digest, up to the last digit that a terminal shows, and its others. */
const DIGEST = /(sha\d+:[0-9a-f]{12})[0-9a-f]{20,}/g;

/**
 * Returns a table whose columns are as wide as their widest cell, except the last one. Text from outside is escaped.
 *
 * `columns`: the width of the terminal. There the table fits: cells are wrapped between words, names that are too long are cut in
 * the middle, and digests are shortened. A long word of the last column stays whole, so that it can be copied. Without `columns`
 * every cell is whole and every row is one line, for `grep` and files.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[], columns?: number): string {
  const cells = [header, ...rows].map((row) => row.map((cell) => shown(cell, columns !== undefined)));
  const widths = columns === undefined ? naturalWidths(cells) : fittedWidths(cells, columns);
  const last = header.length - 1;
  return cells
    .flatMap((row) => {
      const columnsOfRow = row.map((cell, column) => {
        if (columns === undefined) return [cell];
        const width = widths[column] ?? 0;
        const lines = wrapped(cell, width);
        return column === last ? lines : lines.map((line) => cutMiddle(line, width));
      });
      const height = Math.max(...columnsOfRow.map((lines) => lines.length));
      return Array.from({ length: height }, (_, line) =>
        columnsOfRow
          .map((lines, column) =>
            column === last ? (lines[line] ?? '') : (lines[line] ?? '').padEnd(widths[column] ?? 0),
          )
          .join('  ')
          .trimEnd(),
      );
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** Returns a table under its title; empty if it has no rows. */
export function titled(
  title: string,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  columns?: number,
): string {
  return rows.length === 0 ? '' : `${title}\n${table(header, rows, columns)}`;
}

/** Joins the parts of a text by empty lines. Those that are empty are left out. */
export function paragraphs(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n');
}

/** Returns `Deployment shop/web`, without the namespace if there is none. */
export function nameOf(of: NamedObject): string {
  return `${of.kind} ${of.namespace ? `${of.namespace}/` : ''}${of.name}`;
}

const SIZES: readonly number[] = [86_400_000, 3_600_000, 60_000, 1_000];

/** Returns an age in its largest unit: `3 min`. `units`: how days, hours, minutes and seconds are written behind the number. */
export function ageText(ms: number, units: readonly string[] = [' d', ' h', ' min', ' s']): string {
  const at = SIZES.findIndex((size) => ms >= size);
  const [size = 1_000, unit = ''] = [SIZES.at(at), units.at(at)];
  return Number.isFinite(ms) ? `${Math.max(0, Math.floor(ms / size))}${unit}` : '';
}

/** Returns `1 node`, `2 nodes`. */
export function counted(many: number, of: string): string {
  return `${many} ${of}${many === 1 ? '' : 's'}`;
}

function naturalWidths(cells: readonly (readonly string[])[]): number[] {
  return (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
}

/** Returns the widths of the columns within this many characters. A very narrow terminal gets a table that is too wide. */
function fittedWidths(cells: readonly (readonly string[])[], columns: number): number[] {
  const natural = naturalWidths(cells);
  const last = natural.length - 1;
  const widths = natural.slice(0, last);
  const gaps = 2 * last;
  const total = () => widths.reduce((sum, width) => sum + width, 0) + gaps;
  const longestWord = Math.max(...cells.flatMap((row) => (row[last] ?? '').split(' ').map((word) => word.length)));
  const least = Math.min(Math.max(LEAST_LAST, longestWord), MOST_LAST, natural[last] ?? 0);
  while (total() > columns - least) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= LEAST_COLUMN) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return [...widths, Math.max(least, columns - total())];
}

function shown(cell: string, isTerminal: boolean): string {
  const text = printable(cell, 4_000);
  return isTerminal ? text.replaceAll(DIGEST, '$1…') : text;
}

/** Cuts a text in the middle: the beginning and the end of a generated name say most. */
export function cutMiddle(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join('')}…${letters.slice(letters.length - (most - 1 - head)).join('')}`;
}

/** Returns the lines of a text, all but the first with an indent. A word that is longer than a line stays whole. */
export function wrapped(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/**
 * Returns a value in a machine-readable form. Characters that a terminal would obey, or that hide text, are escaped as the form
 * escapes them: a program reads the same value.
 */
export function valueText(value: unknown, form: 'json' | 'yaml'): string {
  return escaped(form === 'json' ? `${JSON.stringify(value, null, 2)}\n` : yamlText(value));
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Quotes each text with such a character: YAML knows escapes only between double quotes. */
function yamlText(value: unknown): string {
  const document = new Document(value);
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && UNSAFE.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // A long text that is folded would have line breaks between its escapes.
  return document.toString({ lineWidth: 0 });
}

/** Returns a platform as people write it: `linux/arm64/v8`. */
export function platformText({ os, architecture, variant }: Platform): string {
  return [os, architecture, ...(variant ? [variant] : [])].join('/');
}

const LONGEST = 1_000;

/**
 * Returns text from outside for Markdown on one line, also in a cell of a table: as code, in which neither markup nor mentions
 * (`@name`) nor links work. A text that could end the code becomes character references, which Markdown never reads as markup
 * (CommonMark, "Entity and numeric character references").
 */
export function code(text: string): string {
  const safe = printable(text, LONGEST).trim();
  if (safe === '') return '';
  if (!/[`|\\<>&]/.test(safe)) return `\`${safe}\``;
  const encoded = safe.replace(/[^A-Za-z0-9 ]/gu, (character) => `&#${character.codePointAt(0)};`);
  return `<code>${encoded}</code>`;
}

/** Returns a table. Its cells are Markdown already. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('');
}

/** `declares linux/arm64, /usr/bin/app is x86-64`. */
export function insideText({ platform, program, machine }: Inside): string {
  const declared = `declares ${platformText(platform)}`;
  return program === undefined || machine === undefined ? declared : `${declared}, ${program} is ${machine}`;
}

/** `12.3 MiB`; for people. */
export function bytesText(bytes: number): string {
  const [size, unit] = bytes < 1024 * 1024 ? [bytes / 1024, 'KiB'] : [bytes / 1024 / 1024, 'MiB'];
  return `${size.toFixed(1)} ${unit}`;
}
