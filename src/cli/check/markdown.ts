import { printable } from '../../kit/printable.ts';

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
