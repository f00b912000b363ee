/** The recorded output of the demo as an animated picture: a page for each part, whose lines appear one after another. */
import { escaped, svg } from './drawing.ts';

type Piece = { readonly text: string; readonly style: string };

const LIGHT = { ink: '#1f2328', page: '#ffffff', frame: '#d1d9e0' };
const DARK = { ink: '#f0f6fc', page: '#0d1117', frame: '#3d444d' };
/** By the codes that the terminal gets: the class, and its colour on light and on dark. */
const STYLES: Readonly<Record<string, readonly [name: string, light: string, dark: string]>> = {
  '2': ['dim', '#59636e', '#9198a1'],
  '31': ['red', '#a40e26', '#ff7b72'],
  '32': ['green', '#116329', '#56d364'],
  '33': ['yellow', '#7d4e00', '#e3b341'],
  '36': ['cyan', '#0550ae', '#79c0ff'],
};
const BOLD = '1';

const CHARACTER = 7.8;
const LINE = 19;
const MARGIN = 20;
/** Seconds between two lines, and for a page to be read. */
const BEAT = 0.12;
const READING = 6;

/** The parts of a recording; each begins with its number, and one with a second table is two. */
function pagesOf(recording: string): string[][] {
  const pages: string[][] = [];
  for (const line of recording.trimEnd().split('\n')) {
    const text = plain(line);
    const begins = /^ {2}\d {2}\S/.test(text) || /^ {2}(The same workloads|What cannot run|WHAT )/.test(text);
    // What stands before the first number belongs to its page.
    if (pages.length === 0 || (begins && !/^ {2}1 {2}/.test(text))) pages.push([]);
    pages.at(-1)?.push(line);
  }
  return pages.map((page) => page.slice(page.findIndex((line) => line !== '')));
}

/** A line without its colours. */
function plain(line: string): string {
  return piecesOf(line)
    .map(({ text }) => text)
    .join('');
}

/** The picture. Without animation it shows the page with the controller's work. */
export function recordingPicture(recording: string): string {
  const pages = pagesOf(recording);
  const columns = Math.max(...pages.flat().map((line) => plain(line).length));
  const rows = Math.max(...pages.map((page) => page.length));
  const [width, height] = [Math.ceil(columns * CHARACTER) + 2 * MARGIN, rows * LINE + 2 * MARGIN];
  const spans = pages.map((page) => page.length * BEAT + READING);
  const total = spans.reduce((sum, span) => sum + span, 0);
  const percent = (seconds: number) => `${Math.round((seconds / total) * 1e4) / 100}%`;
  let at = 0;
  const rules: string[] = [];
  const groups: string[] = [];
  for (const [index, page] of pages.entries()) {
    const [begin, end] = [at, at + (spans[index] ?? 0)];
    at = end;
    const shown = percent(begin + page.length * BEAT);
    const tall = page.length * LINE;
    rules.push(
      `@keyframes p${index}{0%{opacity:0}${begin === 0 ? '' : `${percent(begin - 0.01)}{opacity:0}`}${percent(begin)}{opacity:1}${percent(end - 0.02)}{opacity:1}${percent(end - 0.01)},100%{opacity:0}}`,
      `@keyframes c${index}{0%,${percent(begin)}{transform:none;animation-timing-function:steps(${page.length},end)}${shown},100%{transform:translateY(${tall}px)}}`,
      `.p${index}{animation:p${index} ${total.toFixed(2)}s linear infinite}.c${index}{animation:c${index} ${total.toFixed(2)}s linear infinite}`,
    );
    const first = page.some((line) => plain(line).includes('The same workloads')) ? ' first' : '';
    groups.push(
      `<g class="part p${index}${first}">`,
      ...page.map((line, row) => lineAt(MARGIN + (row + 1) * LINE - 5, line)),
      `<rect class="page cover c${index}" x="1" y="${MARGIN}" width="${width - 2}" height="${tall + 4}"/>`,
      '</g>',
    );
  }
  return svg(
    width,
    height,
    'hack/pictures.ts from hack/pictures/demo.txt. A new recording: npm run record',
    'npm run demo: pods crash on a mixed cluster, then archaware places them, then clean removes everything',
    `<style>${sheet()}${rules.join('')}@media (prefers-reduced-motion:reduce){.part,.cover{animation:none}}</style>`,
    `<clipPath id="frame"><rect width="${width}" height="${height}" rx="12"/></clipPath>`,
    `<rect class="page" width="${width}" height="${height}" rx="12"/>`,
    '<g clip-path="url(#frame)">',
    ...groups,
    '</g>',
    `<rect class="frame" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="12"/>`,
  );
}

function lineAt(y: number, line: string): string {
  let column = 0;
  const spans = piecesOf(line).flatMap(({ text, style }) => {
    const lead = text.length - text.trimStart().length;
    const body = text.trim();
    const x = MARGIN + (column + lead) * CHARACTER;
    column += text.length;
    if (body === '') return [];
    // The same width in every font, so that columns stay columns.
    const length = Math.round(body.length * CHARACTER * 10) / 10;
    const name = style === '' ? '' : ` class="${style}"`;
    return `<tspan${name} x="${Math.round(x * 10) / 10}" textLength="${length}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">${escaped(body)}</tspan>`;
  });
  return spans.length === 0 ? '' : `<text y="${y}">${spans.join('')}</text>`;
}

/** A line as the terminal has it, cut where a colour changes. */
function piecesOf(line: string): Piece[] {
  const pieces: Piece[] = [];
  let style = '';
  const [plain = '', ...coloured] = line.split('\u001b[');
  if (plain !== '') pieces.push({ text: plain, style });
  for (const part of coloured) {
    const [, code = '', text = ''] = /^(\d+)m(.*)$/.exec(part) ?? [];
    style = code === BOLD ? 'bold' : (STYLES[code]?.[0] ?? '');
    if (text !== '') pieces.push({ text, style });
  }
  return pieces;
}

function sheet(): string {
  const rules = ({ ink, page, frame }: typeof LIGHT, column: 1 | 2) =>
    `text{fill:${ink}}.page{fill:${page}}.frame{fill:none;stroke:${frame}}${Object.values(STYLES)
      .map((style) => `.${style[0]}{fill:${style[column]}}`)
      .join('')}`;
  return [
    "text{font:13px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}.bold{font-weight:700}",
    '.part{opacity:0}.first{opacity:1}.cover{transform:translateY(2000px)}',
    rules(LIGHT, 1),
    `@media (prefers-color-scheme:dark){${rules(DARK, 2)}}`,
  ].join('');
}
