import type { Command, Flag } from '../../src/cli/command.ts';
import { COMMON_FLAGS } from '../../src/cli/command-words.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { PROGRAM } from '../../src/cli/program.ts';
import { code, heading, join, type Page, table } from './markdown.ts';

/** Every command with its operands, flags and examples; flags that are configuration keys are on another page. */
export function flagsPage(): Page {
  const commands = COMMANDS.map(({ name, operands, summary }) => [code(`${name} ${operands}`.trim()), summary]);
  const text = join(
    heading('Commands and flags'),
    `    ${PROGRAM} COMMAND [flags]`,
    'A flag takes its value as `--flag value` or `--flag=value`. Every [configuration key](configuration.md) is also a flag of every command.\n`run` has no `--output`. Exit codes: [errors](errors.md#exit-codes).',
    `## Commands\n\n${table(['command', ''], commands)}`,
    `## Flags of every command\n\n${flagTable([
      ...COMMON_FLAGS,
      { name: 'help', letter: 'h', text: 'Show help' },
      { name: 'version', text: 'Show version number' },
    ])}`,
    ...COMMANDS.map(commandSection),
  );
  return { file: 'flags.md', text };
}

function commandSection({ name, description, flags, examples }: Command): string {
  return [
    `## ${name}`,
    ...(description === undefined ? [] : [description.replaceAll(/^(\w+) {2,}/gm, '- `$1`: ')]),
    ...(flags.length === 0 ? [] : [flagTable(flags)]),
    table(
      ['example', ''],
      examples.map(([line, text]) => [code(`${PROGRAM} ${line}`), text]),
    ),
  ].join('\n\n');
}

function flagTable(flags: readonly Flag[]): string {
  return table(
    ['flag', ''],
    flags.map((flag) => [code(synopsis(flag)), flag.text]),
  );
}

/** Returns `-o, --output FORM`. */
function synopsis({ name, letter, value }: Flag): string {
  return `${letter === undefined ? '' : `-${letter}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
}
