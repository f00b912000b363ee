import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { code, heading, join, type Page, table } from './markdown.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** One command or flag, as `--help` names and explains it. */
type Entry = { readonly name: string; readonly text: string };

/** The content of `--help`: its first lines, and its groups of commands and flags. */
type Help = { readonly usage: string; readonly groups: ReadonlyMap<string, readonly Entry[]> };

/** Every command with its own flags; flags that are configuration keys are on another page. */
export async function flagsPage(): Promise<Page> {
  // A fixed locale, because yargs translates its own words.
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', MAIN, '--help'], { env });
  const { usage, groups } = readHelp(stdout);
  const sections = [...groups]
    .filter(([group]) => group !== 'Configuration')
    .map(([group, entries]) => {
      const isCommands = group === 'Commands';
      const rows = entries.map(({ name, text }) => [code(name), text]);
      return [`## ${titleOf(group)}`, table([isCommands ? 'command' : 'flag', ''], rows)].join('\n\n');
    });
  const text = join(
    heading('Commands and flags'),
    `    ${usage}`,
    'A flag takes its value as `--flag value` or `--flag=value`. Every [configuration key](configuration.md) is also a flag of every command.\nExit codes: [errors](errors.md#exit-codes).',
    ...sections,
  );
  return { file: 'flags.md', text };
}

/** Parses the text of `--help`, in which long lines are broken. */
export function readHelp(help: string): Help {
  const usage: string[] = [];
  const groups = new Map<string, Entry[]>();
  let entries: Entry[] | undefined;
  for (const line of help.split('\n')) {
    const group = /^(\S.*):$/.exec(line)?.[1];
    const [, name = '', first = ''] = /^ {2,6}(\S.*?)(?: {2,}(\S.*))?$/.exec(line) ?? [];
    const last = entries?.at(-1);
    if (group !== undefined) {
      entries = [];
      groups.set(group, entries);
    } else if (entries === undefined && line !== '') usage.push(line);
    else if (/^\S/.test(line)) break;
    else if (name !== '') entries?.push({ name: name.replace(/^archaware-controller /, ''), text: withoutType(first) });
    else if (last !== undefined && line.trim() !== '') {
      entries?.splice(-1, 1, { ...last, text: withoutType(`${last.text} ${line.trim()}`.trim()) });
    }
  }
  return { usage: usage.join(' '), groups };
}

function withoutType(text: string): string {
  return text.replace(/\s*\[(?:string|boolean)\]$/, '');
}

function titleOf(group: string): string {
  const titles: Readonly<Record<string, string>> = { Commands: group, Common: 'Of every command', Options: 'Others' };
  return titles[group] ?? `Of ${group}`;
}
