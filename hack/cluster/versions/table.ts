/** The table of docs/support.md: which minors of Kubernetes are supported, how each was tried, and until when. */
import { between } from '../../write-between.ts';
import { FIRST_WITH_MUTATING_POLICIES } from '../spawn.ts';
import type { Supported, Versions } from './versions.ts';

/** The page that has the table. */
export const PAGE = 'docs/support.md';

/** How many months after upstream's end a minor is supported at least: as long as providers sell support of it. */
const MONTHS_AFTER_UPSTREAM = 12;

/** Returns the table, newest minor first. */
export function supportTable({ minors }: Versions): string {
  const rows = minors.map((one, index) => {
    const days = [`${one.end}${one.computed ? ' (computed)' : ''}`, yearAfter(one.end)];
    return `| ${[one.minor, manifestOf(one), triedHow(one, index === 0), ...days].join(' | ')} |`;
  });
  return [
    "| version | manifest | tried | upstream's support ends | archaware supports it at least until |",
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** Returns the text of the page with the table between its two marks. */
export function withSupportTable(text: string, versions: Versions): string {
  return between(text, 'kubernetes', supportTable(versions));
}

function manifestOf({ minor }: Supported): string {
  const isNew = Number(minor.split('.')[1]) >= FIRST_WITH_MUTATING_POLICIES;
  return `\`archaware-controller${isNew ? '' : '-1.30'}.yaml\``;
}

function triedHow({ patch }: Supported, isMain: boolean): string {
  if (patch === undefined) return 'no';
  return isMain ? `${patch}: all end-to-end tests, and a real node` : `${patch}: \`npm run test:versions\``;
}

function yearAfter(day: string): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + MONTHS_AFTER_UPSTREAM, date)).toISOString().slice(0, 10);
}
