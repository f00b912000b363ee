import { markdownTable } from '../../src/cli/output.ts';

/** What stands on a page of docs between the marks of this name. */
export type Part = { readonly page: string; readonly name: string; readonly text: string };

/** A table; cells may contain anything but line breaks. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return markdownTable(
    header.map(escaped),
    rows.map((row) => row.map(escaped)),
  ).trimEnd();
}

/** Formats text as code; an empty text stays empty. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

/** Formats several texts as code. */
export function codes(texts: readonly string[]): string {
  return texts.map(code).join(', ');
}

/** Joins paragraphs, tables and headings. */
export function join(...parts: readonly string[]): string {
  return parts.join('\n\n');
}

/** A bar would end the cell, even within code. */
function escaped(cell: string): string {
  return cell.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
