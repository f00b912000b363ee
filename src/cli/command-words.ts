import yargs, { type Argv } from 'yargs';
import type { Surroundings } from '../app/surroundings.ts';
import { VERSION } from '../app/version.ts';
import { STANDARD_INPUT } from '../config/config-file.ts';
import { allKeys } from '../config/keys.ts';
import { unknownFlag } from '../config/load.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import type { Command, Flag } from './command.ts';
import type { ConfigWords } from './command-context.ts';
import { COMMANDS } from './commands.ts';
import { COMMON_FLAGS, commonFlagsOf } from './flags.ts';
import { PROGRAM } from './program.ts';

/** The text after the flags. Each paragraph is one line: yargs breaks lines at the width of the terminal. */
const epilogue = (program: string) =>
  [
    'Every configuration key is a flag of every command (--taints.nodeSelector), and an environment variable ' +
      '(ARCHAWARE_TAINTS__NODE_SELECTOR). A flag wins over a variable, a variable over the file, and the file over the ' +
      `default. ${program} config --help lists the keys.`,
    'Exit codes: 0 done; 1 failed; 2 plan found changes, status found problems, inspect could not resolve an image, clean ' +
      'left something, check found something missing, or report --fail-under was not reached; 3 wrong command line, ' +
      'configuration or kubeconfig, or nothing to judge.',
  ].join('\n\n');

const USAGE = '$0 COMMAND [flags]\n\nPlaces pods on nodes whose architecture their images support.';

const HIDDEN = { type: 'string', hidden: true } as const;

/** The widest help. Lines that are longer are hard to read, also on a wide terminal. */
const MOST_COLUMNS = 120;

/** The values of flags and operands, by their names, as yargs gives them. */
export type Arguments = Readonly<Record<string, unknown>>;

/** Parses the words. `help` is the text to print instead of running anything; empty if there is none. */
export async function parse(
  words: readonly string[],
  surroundings: Surroundings,
  isHelpAsked = words.some((word) => word === '--help' || word === '-h'),
): Promise<{ argv: Arguments; help: string }> {
  const { columns, program } = surroundings;
  const named = COMMANDS.find(({ name }) => words.includes(name));
  refuseValues(words, [...COMMON_FLAGS, ...(named?.flags ?? [])]);
  const parser = createParser(program, Math.min(MOST_COLUMNS, columns ?? MOST_COLUMNS), named, isHelpAsked, words);
  let help = '';
  const argv = await parser.parseAsync(normalised(words), {}, (_error: unknown, _argv: unknown, output: string) => {
    // The type says nothing that the name of the flag and its text do not say.
    help = output.replaceAll(/(?<!\s)\s*\[(?:string|boolean)\]$/gm, '');
  });
  // The help was asked for in another way, as with `-Ah`.
  if (help !== '' && !isHelpAsked) return parse(words, surroundings, true);
  return { argv, help };
}

/** Refuses a value for a flag that takes none: yargs reads every text but `true` as false. */
function refuseValues(words: readonly string[], flags: readonly Flag[]): void {
  const end = words.indexOf('--');
  for (const word of end < 0 ? words : words.slice(0, end)) {
    const [, name, value] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
    const takesNone = flags.some((flag) => flag.name === name && flag.value === undefined);
    if (!takesNone || value === 'true' || value === 'false') continue;
    throw new ConfigurationError([`--${name}: got ${JSON.stringify(value)}, expected true, false or no value`]);
  }
}

function createParser(
  program: string,
  columns: number,
  named: Command | undefined,
  isHelpAsked: boolean,
  words: readonly string[] = [],
) {
  // The help of `config validate` is about that action, which reads no keys from its command line.
  const isOfAction = named?.actionsWithoutKeys?.some((action) => words.includes(action)) === true;
  const parser = yargs([])
    .scriptName(program)
    .locale('en')
    .parserConfiguration({ 'dot-notation': false, 'camel-case-expansion': false, 'duplicate-arguments-array': true })
    .usage(isHelpAsked ? USAGE : '')
    .epilogue(isHelpAsked ? epilogue(program) : '')
    .wrap(columns)
    .alias('help', 'h')
    .version(VERSION)
    .exitProcess(false)
    .fail((message, error) => {
      throw error ?? new ConfigurationError([message]);
    });
  for (const { path, description, fallback, form } of allKeys()) {
    const shown = form === 'list' && Array.isArray(fallback) ? fallback.join(',') : fallback;
    const value = typeof shown === 'string' ? shown : JSON.stringify(shown);
    const describe = `${description} (${value || 'none'})`;
    const isShown = named?.listsKeys === true && isHelpAsked && !isOfAction;
    // yargs measures every text, also a hidden one, which would cost each command 20 ms.
    parser.option(path, isShown ? { type: 'string', group: 'Configuration keys:', describe } : HIDDEN);
  }
  for (const flag of commonFlagsOf(named)) addFlag(parser, flag, isHelpAsked ? 'Common:' : undefined);
  // yargs lays out the help of every command line, which takes as long as all that it lists.
  for (const command of COMMANDS.filter(({ name }) => isHelpAsked || words.includes(name))) {
    parser.command(command.name, command.summary, (own) => describeCommand(own, command, isHelpAsked));
  }
  return parser;
}

function describeCommand(parser: Argv, command: Command, isHelpAsked: boolean): void {
  const { name, operands, summary, description, flags, examples } = command;
  // yargs lays out the help of every command that it runs, whether or not somebody asked for it.
  if (!isHelpAsked) {
    for (const flag of flags) addFlag(parser, flag, undefined);
    return;
  }
  const usage = ['$0', name, operands, '[flags]'].filter((part) => part !== '').join(' ');
  parser.usage([usage, `${summary}.`, ...(description === undefined ? [] : [description])].join('\n\n'));
  for (const flag of flags) addFlag(parser, flag, 'Flags:');
  for (const [line, text] of examples) parser.example(`$0 ${line}`, text);
}

/** Adds a flag; without a group, the flag is not in the help. */
function addFlag(parser: Argv, { name, letter, value, text }: Flag, group: string | undefined): void {
  const type = value === undefined ? 'boolean' : 'string';
  const shown = group === undefined ? { hidden: true } : { group, describe: text };
  parser.option(name, { type, ...shown, ...(letter === undefined ? {} : { alias: letter }) });
}

/** Works around yargs, which treats the `-` of `--config -` as an operand, but not that of `-f -`. */
function normalised(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of words) {
    const before = joined.at(-1) ?? '';
    if (word === STANDARD_INPUT && ['--config', '--file', '--compare'].includes(before))
      joined.splice(-1, 1, `${before}=${word}`);
    else joined.push(word);
  }
  return joined;
}

/** Returns the configuration that a command line of the controller names. Flags that are unknown here are left out. */
export async function configWords(words: readonly string[]): Promise<ConfigWords> {
  const argv: Arguments = await createParser(PROGRAM, MOST_COLUMNS, undefined, false).parseAsync(normalised(words));
  const keys = Object.fromEntries(
    Object.entries(argv).flatMap(([name, value]) => {
      const path = keyOf(name);
      return path === undefined || value === undefined ? [] : [[path, textOf(value)]];
    }),
  );
  return { keys, configFile: argv.config === undefined ? undefined : String(argv.config) };
}

/** Returns the configuration key that a flag sets; undefined for other flags. */
function keyOf(flag: string): string | undefined {
  const path = flag === 'log-level' ? 'log.level' : flag === 'log-format' ? 'log.format' : flag;
  return allKeys().some((key) => key.path === path) ? path : undefined;
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** Returns the flags that are configuration keys, as text. Refuses any other flag that is neither common nor of this command. */
export function configFlags(argv: Arguments, command: Pick<Command, 'flags' | 'forms'>): Record<string, string> {
  const paths = allKeys().map(({ path }) => path);
  const known = [...commonFlagsOf(command), ...command.flags];
  const others = [...known.map(({ name }) => name), 'help', 'version'];
  // yargs gives the value of a flag that it knows under both names.
  const lettered = [...COMMON_FLAGS, ...command.flags, { name: 'help', letter: 'h' }];
  const isLetterOf = (name: string) => lettered.some((flag) => flag.letter === name && argv[flag.name] !== undefined);
  const repeatable = new Set(known.filter(({ isRepeatable }) => isRepeatable).map(({ name }) => name));
  const flags: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(argv)) {
    if (name === '_' || name === '$0' || isLetterOf(name) || value === undefined) continue;
    const path = keyOf(name);
    if (path !== undefined) flags[path] = textOf(value);
    else if (!others.includes(name)) problems.push(unknownFlag(name, [...paths, ...others]));
    else if (Array.isArray(value) && !repeatable.has(name)) {
      problems.push(`--${name}: given ${value.length} times, expected once`);
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return flags;
}
