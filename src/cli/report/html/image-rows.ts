import { html, type Markup } from './markup.ts';
import { numberText } from './numbers.ts';

/** Marks a row that waits for a button to be shown. Without a script, and on paper, all rows are there. */
export function later(at: number, limit: number): Markup {
  return at < limit ? html`` : html` class="later"`;
}

/** The button that shows all rows of the table before it. */
export function showAll(rows: number, limit: number, nouns: string): Markup {
  if (rows <= limit) return html``;
  return html`<p class="more"><button type="button" data-show-all>Show all ${numberText(rows)} ${nouns}</button></p>`;
}
