import { styleText } from 'node:util';
import type { Surroundings } from '../app/surroundings.ts';

/** What a line means for its reader. */
export type Tone = 'good' | 'warning' | 'bad';

/** Marks and colors for people at a terminal. Elsewhere each text stays as it is. */
export type Paint = {
  /** Whether there are marks: the output goes to a terminal, or colors were asked for. */
  readonly marks: boolean;
  /** Returns `✓`, `!` or `✗` in its color; without marks a space. */
  mark(tone: Tone): string;
  /** Colors a text; nothing else is added. */
  tone(tone: Tone, text: string): string;
  bold(text: string): string;
};

/** The marks, without colors. */
export const MARKS: Readonly<Record<Tone, string>> = { good: '✓', warning: '!', bad: '✗' };
const COLORS = { good: 'green', warning: 'yellow', bad: 'red' } as const;

/** Creates the marks and colors of a command. */
export function createPaint({ columns, colors }: Pick<Surroundings, 'columns' | 'colors'>): Paint {
  const marks = columns !== undefined || colors;
  const styled = (style: Parameters<typeof styleText>[0], text: string) =>
    colors ? styleText(style, text, AS_ASKED) : text;
  return {
    marks,
    mark: (tone) => (marks ? styled(COLORS[tone], MARKS[tone]) : ' '),
    tone: (tone, text) => styled(COLORS[tone], text),
    bold: (text) => styled('bold', text),
  };
}

/** Newer versions of Node.js would look at standard output and the environment again. */
const AS_ASKED = { validateStream: false };

/**
 * Whether results are colored. `asked`: the value of `--color`. With `auto` a terminal is, unless NO_COLOR (no-color.org) is set or
 * it can show no colors.
 */
export function hasColors(
  asked: string,
  { environment, columns }: Pick<Surroundings, 'environment' | 'columns'>,
): boolean {
  if (asked !== 'auto') return asked === 'always';
  return columns !== undefined && !environment.NO_COLOR && environment.TERM !== 'dumb';
}
