// Takes each entry out of what decides (src/placement/subject.ts), one after the other, and says whether the unit tests notice. Twice
// for a field: it is not read, and it is read but not in the key. Usage: npx tsx hack/subject-fields.ts
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = 'src/placement/subject.ts';
const TESTS = ['test/placement/subject.test.ts'];
const MOCHA = [
  'mocha',
  '--no-config',
  '--node-option',
  'import=tsx',
  '--timeout',
  '60000',
  '--reporter',
  'dot',
  '--bail',
];

const text = readFileSync(FILE, 'utf8');
const between = (start: string, end: string): string => text.split(start)[1]?.split(end)[0] ?? '';
const names = (part: string, pattern: RegExp): string[] =>
  [...part.matchAll(pattern)].flatMap(([, name]) => name ?? []);

const fields = names(between('type Fields = {', '\n};'), /^ {2}readonly (\w+):/gm);
const settings = names(between('export type SubjectSettings', '& {'), /'(\w+)'/g);
const removals: readonly (readonly [what: string, changed: string])[] = [
  ...fields.map((name) => {
    const own = text.replace(new RegExp(`^( {6}${name}:) [^\\n]+,$`, 'm'), '$1 undefined as never,');
    return [`field ${name}, not read`, own] as const;
  }),
  ...fields.map((name) => {
    const own =
      name === 'settings'
        ? text.replace(', settingsText)', ')')
        : text.replace('settings: undefined,', `$& ${name}: undefined,`);
    return [`field ${name}, not in the key`, own] as const;
  }),
  ...[...settings, 'key', 'effect'].map((name) => {
    const own = text.replace(
      'text: JSON.stringify(own)',
      `text: JSON.stringify(own, (name, value) => name === '${name}' ? undefined : value)`,
    );
    return [`setting ${name}, not in the key`, own] as const;
  }),
];

let living = 0;
try {
  for (const [what, changed] of removals) {
    if (changed === text) throw new Error(`${what}: nothing was changed; adapt this script to ${FILE}`);
    writeFileSync(FILE, changed);
    const { status, stdout } = spawnSync('npx', [...MOCHA, ...TESTS], { encoding: 'utf8' });
    const [, test = ''] = /1\) ([\s\S]*?):\n/.exec(stdout) ?? [];
    if (status === 0) living += 1;
    console.log(
      `${status === 0 ? 'NOT CAUGHT' : 'caught'}  ${what}${status === 0 ? '' : `  (${test.replace(/\s+/g, ' ')})`}`,
    );
  }
} finally {
  writeFileSync(FILE, text);
}
console.log(`${removals.length - living} of ${removals.length} removals are caught`);
process.exitCode = living === 0 ? 0 : 1;
