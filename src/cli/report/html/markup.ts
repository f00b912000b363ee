import { printable } from '../../../kit/printable.ts';

/** HTML that is safe to put into a page. Only the template `html` makes it. */
export type Markup = { readonly markup: string };

/** What stands in a template: text is escaped, markup is not, and what is absent leaves nothing. */
export type Part = string | number | Markup | readonly Part[] | undefined;

/** The longest text from outside that a page shows, in bytes. */
const LONGEST = 4_000;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Writes HTML: a text between the words of the template is escaped, so it stays text between tags and inside quoted attributes.
 * Control and format characters appear as `\u…`.
 */
export function html(words: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return { markup: words.map((word, at) => `${word}${write(parts[at])}`).join('') };
}

/** Marks a text that the program itself wrote (its style, its script, its icon) as safe. Never for text from outside. */
export function trusted(markup: string): Markup {
  return { markup };
}

/** A name of an image as text that breaks after slashes. */
export function breakable(name: string): Markup {
  return html`${name.split('/').map((part, at) => (at === 0 ? part : html`/<wbr>${part}`))}`;
}

function write(part: Part): string {
  if (part === undefined) return '';
  if (typeof part === 'number') return String(part);
  if (typeof part === 'string') return printable(part, LONGEST).replace(/[&<>"']/g, (each) => ENTITIES[each] ?? '');
  if ('markup' in part) return part.markup;
  return part.map(write).join('');
}
