/** A few shapes in SVG, and colours that are legible on light and on dark pages. */

export type Tone = 'plain' | 'accent' | 'good' | 'bad' | 'warn';
export type Point = readonly [x: number, y: number];

/** One line of text. */
type Line = string | { readonly text: string; readonly tone?: Tone; readonly bold?: boolean; readonly mono?: boolean };

const FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Verdana, sans-serif";
const MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

/** For each tone: the text and the border, and the filling. */
type Colours = Readonly<Record<Tone, readonly [ink: string, fill: string]>>;
const LIGHT: Colours = {
  plain: ['#59636e', '#f6f8fa'],
  accent: ['#0550ae', '#ddf4ff'],
  good: ['#116329', '#dafbe1'],
  bad: ['#a40e26', '#ffebe9'],
  warn: ['#7d4e00', '#fff8c5'],
};
const DARK: Colours = {
  plain: ['#9198a1', '#151b23'],
  accent: ['#79c0ff', '#0c2d6b'],
  good: ['#56d364', '#033a16'],
  bad: ['#ff7b72', '#490202'],
  warn: ['#e3b341', '#3b2300'],
};

/** A whole picture, with a title for those who do not see it. */
export function picture(width: number, height: number, title: string, ...parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    '<!-- Made by hack/pictures/scale.ts; change that, then run: npm run generate -->',
    `<title>${escaped(title)}</title>`,
    `<style>${sheet()}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="12"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
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
    `text{font:13px ${FONT}}.mono{font-family:${MONO};font-size:12px}.bold{font-weight:600}`,
    'rect{stroke-width:1.5}.line{fill:none;stroke-width:1.8}.dashed{stroke-dasharray:6 5}',
    colourRules('#1f2328', '#ffffff', LIGHT),
    `@media (prefers-color-scheme:dark){${colourRules('#f0f6fc', '#0d1117', DARK)}}`,
  ].join('');
}

/** Lines of text, centred or from the left. */
export function label(x: number, y: number, anchor: 'start' | 'middle' | 'end', ...lines: readonly Line[]): string {
  return lines.map((line, index) => textAt(x, y + 17 * index, line, anchor)).join('\n');
}

function textAt(x: number, y: number, line: Line, anchor: 'start' | 'middle' | 'end' = 'start'): string {
  const { text, tone, bold, mono } =
    typeof line === 'string' ? { text: line } : { tone: undefined, bold: false, mono: false, ...line };
  const names = [tone === undefined ? 'ink' : `t-${tone}`, ...(bold ? ['bold'] : []), ...(mono ? ['mono'] : [])];
  const end = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text class="${names.join(' ')}" x="${x}" y="${y}"${end}>${escaped(text)}</text>`;
}

/** Text as XML takes it. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
