import { printable } from '../../../kit/printable.ts';

/** HTML that is safe to put into a page. Only the template `html` makes it. */
export type Markup = { readonly markup: string };

/** What stands in a template: text is escaped, markup is not, and what is absent leaves nothing. */
export type MarkupPart = string | number | Markup | readonly MarkupPart[] | undefined;

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
export function html(words: TemplateStringsArray, ...parts: readonly MarkupPart[]): Markup {
  return { markup: words.map((word, at) => `${word}${write(parts[at])}`).join('') };
}

/** Marks a text that the program itself wrote (its style, its script, its icon) as safe. Never for text from outside. */
export function trusted(markup: string): Markup {
  return { markup };
}

/** A list, or nothing. */
export function list(items: readonly MarkupPart[]): Markup {
  return items.length === 0 ? html`` : html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}

/** A cell with a number, which the script sorts by its value. An absent number is sorted as `absent`. */
export function number(value: number | undefined, absent: number, textOf: (value: number) => string = String): Markup {
  return html`<td class="n" data-v="${value ?? absent}">${value === undefined ? '–' : textOf(value)}</td>`;
}

/**
 * A table in a box of its own, so that where it is long only the box scrolls. Each cell names its column, because where the page is
 * narrow each row is a card. A text cannot pass for a cell here: its `<` is escaped already.
 */
export function box(id: string, heads: readonly string[], rows: readonly Markup[]): Markup {
  const named = rows.map(({ markup }) => {
    let column = 0;
    return trusted(markup.replace(/<t[dh]\b/g, (tag) => `${tag} data-head="${write(heads[column++])}"`));
  });
  return html`<div class="scroll" role="group" tabindex="0" aria-labelledby="${id}"><table aria-labelledby="${id}">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${named}</tbody></table></div>`;
}

function write(part: MarkupPart): string {
  if (part === undefined) return '';
  if (typeof part === 'number') return String(part);
  if (typeof part === 'string') return printable(part, LONGEST).replace(/[&<>"']/g, (each) => ENTITIES[each] ?? '');
  if ('markup' in part) return part.markup;
  return part.map(write).join('');
}
