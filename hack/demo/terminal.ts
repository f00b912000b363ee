/** Text for people: headings, and tables whose cells may be coloured. Colours on a terminal or with FORCE_COLOR, and not with NO_COLOR. */
import { styleText } from 'node:util';
import { wrapped as linesOf } from '../../src/cli/output.ts';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** A piece of text in one colour; a cell is one or several of them. */
export type Piece = { readonly text: string; readonly style?: Style };
export type Cell = string | readonly Piece[];

const wanted = process.stdout.isTTY === true || Boolean(process.env.FORCE_COLOR);
const colours = wanted && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
const MARGIN = '  ';
/** What fits a terminal of 80 columns beside the margin. */
const WIDTH = 78;

/** The text in a colour, where there are colours. */
export function paint(text: string, style: Style | undefined): string {
  return colours && style !== undefined ? styleText(style, text) : text;
}

/** Writes lines, indented as everything is. */
export function say(text = '', style?: Style): void {
  for (const line of text.split('\n')) {
    process.stdout.write(line === '' ? '\n' : `${MARGIN}${paint(line, style)}\n`);
  }
}

export function heading(number: number, text: string): void {
  say();
  say(`${number}  ${text}`, 'bold');
  say();
}

/** A command as somebody would type it. */
export function command(text: string): void {
  process.stdout.write(`${MARGIN}${paint('$', 'dim')} ${paint(text, 'cyan')}\n`);
}

/** Columns as wide as their widest cell. */
export function table(header: readonly string[], rows: readonly (readonly Cell[])[]): void {
  const heads: Cell[][] = [header.map((text) => [{ text, style: 'dim' }])];
  const cells = [...heads, ...rows].map((row) => row.map(pieces));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => lengthOf(row[column] ?? []))));
  for (const row of cells) {
    const line = row.map((cell, column) => {
      const padding = column === row.length - 1 ? '' : ' '.repeat((widths[column] ?? 0) - lengthOf(cell) + 2);
      return cell.map(({ text, style }) => paint(text, style)).join('') + padding;
    });
    process.stdout.write(`${MARGIN}${line.join('').trimEnd()}\n`);
  }
}

/** Text in lines that fit, each indented by so many blanks more. */
export function wrapped(text: string, indent: number, style?: Style): void {
  const blanks = ' '.repeat(indent);
  for (const line of linesOf(text, WIDTH - indent)) say(blanks + line, style);
}

function pieces(cell: Cell): readonly Piece[] {
  return typeof cell === 'string' ? [{ text: cell }] : cell;
}

function lengthOf(cell: readonly Piece[]): number {
  return cell.reduce((sum, { text }) => sum + text.length, 0);
}
