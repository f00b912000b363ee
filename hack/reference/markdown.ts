/** A page of the reference: its name in docs/reference, and its text. */
export type Page = { readonly file: string; readonly text: string };

/** The first lines of each page. */
export function heading(title: string): string {
  return `# ${title}\n\n<!-- Made by hack/reference.ts from the sources; change those, then run: npm run generate -->`;
}

/** A table; cells may contain anything but line breaks. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Formats text as code; an empty text stays empty. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

/** Formats several texts as code. */
export function codes(texts: readonly string[]): string {
  return texts.map(code).join(', ');
}

/** Joins parts with an empty line between them, and a line break at the end. */
export function join(...parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`;
}

/** A bar would end the cell, even within code. */
function escaped(cell: string): string {
  return cell.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
