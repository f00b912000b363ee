/** A page of the reference: its name in docs/reference, and its text. */
export type Page = { readonly file: string; readonly text: string };

/** The first lines of each page. */
export function heading(title: string): string {
  return `# ${title}\n\n<!-- Made by hack/reference.ts from the sources; change those, then run: npm run generate -->`;
}

/** A table; cells may hold anything but line breaks. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** As code in a line of text; nothing stays nothing. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

/** Several of them. */
export function codes(texts: readonly string[]): string {
  return texts.map(code).join(', ');
}

/** Parts with an empty line between them, and a line break at the end. */
export function join(...parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`;
}

/** A bar would end the cell, also within code. */
function escaped(cell: string): string {
  return cell.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
