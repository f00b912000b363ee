import type { Flag } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { COMMON_FLAGS } from '../../src/cli/flags.ts';
import { code, codes, join, type Part, table } from './markdown.ts';

/** The flags of the commands. One that several commands have in the same words stands once, with their names. */
export function flagsPart(): Part {
  const uses = new Map<string, { readonly row: Row; readonly commands: string[] }>();
  for (const { name, flags } of COMMANDS) {
    for (const row of flags.map(rowOf)) {
      const use = uses.get(row.join()) ?? { row, commands: [] };
      use.commands.push(name);
      uses.set(row.join(), use);
    }
  }
  const shared = [...uses.values()].filter(({ commands }) => commands.length > 1);
  const sections = COMMANDS.flatMap(({ name }) => {
    const own = [...uses.values()].filter(({ commands }) => commands.join() === name).map(({ row }) => row);
    return own.length === 0 ? [] : [`### Flags of ${name}`, table(['flag', ''], own)];
  });
  const text = join(
    '### Flags of every command',
    table(['flag', ''], COMMON_FLAGS.map(rowOf)),
    '### Flags of several commands',
    table(
      ['flag', '', 'commands'],
      shared.map(({ row, commands }) => [...row, codes(commands)]),
    ),
    ...sections,
  );
  return { page: 'commands.md', name: 'flags', text };
}

type Row = readonly [flag: string, text: string];

function rowOf(flag: Flag): Row {
  return [code(synopsis(flag)), flag.text];
}

/** Returns `-o, --output FORM`. */
function synopsis({ name, letter, value }: Flag): string {
  return `${letter === undefined ? '' : `-${letter}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
}
