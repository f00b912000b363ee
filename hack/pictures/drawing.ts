/** A few shapes in SVG, and colours that are legible on light and on dark pages. */

export type Tone = 'plain' | 'accent' | 'good' | 'bad' | 'warn';
export type Point = readonly [x: number, y: number];

/** One line of text in a box or beside an arrow. */
export type Line =
  | string
  | { readonly text: string; readonly tone?: Tone; readonly bold?: boolean; readonly mono?: boolean };

const FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Verdana, sans-serif";
const MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

/** For each tone: the text and the border, and what a box is filled with. */
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
    '<!-- Made by hack/pictures.ts; change that, then run: npm run generate -->',
    `<title>${escaped(title)}</title>`,
    `<style>${sheet()}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="12"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** The rules of one colour scheme. */
export function colourRules(ink: string, page: string, colours: Colours): string {
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

/** A box with lines of text from its top; the first one is bold. */
export function box(
  x: number,
  y: number,
  width: number,
  height: number,
  tone: Tone,
  ...lines: readonly Line[]
): string {
  const [first, ...others] = lines;
  const head: Line[] = first === undefined ? [] : [typeof first === 'string' ? { text: first, bold: true } : first];
  const texts = [...head, ...others].map((line, index) => textAt(x + 14, y + 24 + 20 * index, line));
  return [`<rect class="b-${tone}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>`, ...texts].join(
    '\n',
  );
}

/** Lines of text, centred or from the left. */
export function label(x: number, y: number, anchor: 'start' | 'middle' | 'end', ...lines: readonly Line[]): string {
  return lines.map((line, index) => textAt(x, y + 17 * index, line, anchor)).join('\n');
}

/** A line through points that ends in an arrow head. */
export function arrow(points: readonly Point[], tone: Tone = 'plain', style: 'solid' | 'dashed' = 'solid'): string {
  const [end = [0, 0], before = [0, 0]] = [...points].reverse();
  const angle = Math.atan2(end[1] - before[1], end[0] - before[0]);
  const corner = (turn: number) =>
    `${round(end[0] - 10 * Math.cos(angle + turn))},${round(end[1] - 10 * Math.sin(angle + turn))}`;
  const dashed = style === 'dashed' ? ' dashed' : '';
  return [
    `<polyline class="line l-${tone}${dashed}" points="${points.map(([x, y]) => `${x},${y}`).join(' ')}"/>`,
    `<polygon class="t-${tone}" points="${end.join(',')} ${corner(0.45)} ${corner(-0.45)}"/>`,
  ].join('\n');
}

/** A cross, where an arrow would lead to something that never happens. */
export function cross(x: number, y: number): string {
  return [
    `<circle class="b-bad" cx="${x}" cy="${y}" r="13"/>`,
    `<path class="line l-bad" d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12"/>`,
  ].join('\n');
}

/** A line without an arrow head. */
export function line(points: readonly Point[], tone: Tone, style: 'solid' | 'dashed' = 'solid'): string {
  const dashed = style === 'dashed' ? ' dashed' : '';
  return `<polyline class="line l-${tone}${dashed}" points="${points.map(([x, y]) => `${x},${y}`).join(' ')}"/>`;
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

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
