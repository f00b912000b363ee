import type { Behaviour } from './behaviour.ts';
import { NEITHER } from './neither.ts';
import { PLACEMENT, PREFERENCES } from './placement.ts';
import { IMAGES, REGISTRIES } from './registries.ts';

/** The sections of docs/conformance.md, by their headings. */
export const SECTIONS: Readonly<Record<string, readonly Behaviour[]>> = {
  'Where pods go': PLACEMENT,
  'Which architecture is preferred': PREFERENCES,
  Registries: REGISTRIES,
  Images: IMAGES,
  'Not tested by either': NEITHER,
};

/** All that follows the introduction of docs/conformance.md. */
export function conformanceTables(): string {
  return Object.entries(SECTIONS)
    .map(([heading, behaviours]) => `## ${heading}\n\n${tableOf(behaviours)}`)
    .join('\n');
}

function tableOf(behaviours: readonly Behaviour[]): string {
  const rows = behaviours.map(({ behaviour, from, outcome, why, tests }) => {
    const shown = tests.map(([file, title]) => `[${nameOf(file)}](../test/${file}) “${title}”`);
    return [behaviour, from, outcome, why, shown.join('<br>')];
  });
  const header = ['behaviour', 'from', 'outcome', 'why', 'shown by'];
  return [header, header.map(() => '---'), ...rows].map(lineOf).join('');
}

const lineOf = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
const nameOf = (file: string) =>
  file
    .split('/')
    .at(-1)
    ?.replace(/\.(?:e2e|test)\.ts$/, '') ?? file;
