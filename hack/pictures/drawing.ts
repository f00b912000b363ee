/** A few shapes in SVG, and colours that are legible on light and on dark pages. */

type Tone = 'plain' | 'accent' | 'warn';
export type Point = readonly [x: number, y: number];

/** One line of text. */
type Line = { readonly text: string; readonly tone?: Tone; readonly bold?: boolean };

const FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Verdana, sans-serif";

/** For each tone: the text and the border, and the filling. */
type Colours = Readonly<Record<Tone, readonly [ink: string, fill: string]>>;
const LIGHT: Colours = {
  plain: ['#59636e', '#f6f8fa'],
  accent: ['#0550ae', '#ddf4ff'],
  warn: ['#7d4e00', '#fff8c5'],
};
const DARK: Colours = {
  plain: ['#9198a1', '#151b23'],
  accent: ['#79c0ff', '#0c2d6b'],
  warn: ['#e3b341', '#3b2300'],
};

/** An SVG file with a title for those who do not see it. `madeBy`: what to change, and to run then. */
export function svg(width: number, height: number, madeBy: string, title: string, ...parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<!-- Made by ${madeBy} -->`,
    `<title>${escaped(title)}</title>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** A picture of the shapes below, on a page with round corners. */
export function picture(width: number, height: number, title: string, ...parts: readonly string[]): string {
  const page = `<rect class="page" width="${width}" height="${height}" rx="12"/>`;
  const madeBy = 'hack/pictures/scale.ts; change that, then run: npm run generate';
  return svg(width, height, madeBy, title, `<style>${sheet()}</style>`, page, ...parts);
}

/** The rules of one colour scheme. */
function colourRules(ink: string, page: string, colours: Colours): string {
  const tones = Object.entries(colours).map(
    ([tone, [text, fill]]) =>
      `.t-${tone}{fill:${text}}.b-${tone}{fill:${fill};stroke:${text}}.l-${tone}{stroke:${text}}`,
  );
  return `.page{fill:${page}}.ink{fill:${ink}}${tones.join('')}`;
}

function sheet(): string {
  return [
    `text{font:13px ${FONT}}.bold{font-weight:600}`,
    'rect{stroke-width:1.5}.line{fill:none;stroke-width:1.8}',
    colourRules('#1f2328', '#ffffff', LIGHT),
    `@media (prefers-color-scheme:dark){${colourRules('#f0f6fc', '#0d1117', DARK)}}`,
  ].join('');
}

/** Lines of text, centred or from the left. */
export function label(x: number, y: number, anchor: 'start' | 'middle' | 'end', ...lines: readonly Line[]): string {
  return lines.map((line, index) => textAt(x, y + 17 * index, line, anchor)).join('\n');
}

function textAt(x: number, y: number, { text, tone, bold }: Line, anchor: 'start' | 'middle' | 'end'): string {
  const name = `${tone === undefined ? 'ink' : `t-${tone}`}${bold ? ' bold' : ''}`;
  const end = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text class="${name}" x="${x}" y="${y}"${end}>${escaped(text)}</text>`;
}

/** Text as XML takes it. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
