import yargs, { type Argv } from 'yargs';
import { type Clients, EXIT, type Surroundings } from '../app/surroundings.ts';
import { VERSION } from '../app/version.ts';
import { STANDARD_INPUT } from '../config/config-file.ts';
import { allKeys } from '../config/keys.ts';
import { unknownFlag } from '../config/load.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { nearest } from '../kit/nearest.ts';
import { escaped } from '../kit/printable.ts';
import type { Command, Flag, Invocation } from './command.ts';
import type { CommonWords, ConfigWords } from './command-context.ts';
import { COMMANDS } from './commands.ts';
import { refusalBesideController } from './deployed.ts';
import { failureLines } from './failure.ts';
import { COMMON_FLAGS, commonFlagsOf, INSTALLATION, MACHINE_FORMS, readInstallation } from './flags.ts';
import { hasColors } from './paint.ts';
import { PROGRAM } from './program.ts';

/** The command that completion scripts call. It is not in the help. */
const COMPLETE = '__complete';

/** Runs one command line and returns its exit code. Errors are printed as lines that say what to do. */
export async function runCommandLine(words: readonly string[], given: Surroundings): Promise<number> {
  const surroundings = withEscapes(given);
  const connections: Clients[] = [];
  try {
    if (words[0] === COMPLETE) {
      const { complete } = await import('./completion/complete.ts');
      await complete(words.slice(1), surroundings);
      return EXIT.done;
    }
    const { argv, help: asked } = await parse(withoutHelpCommand(words), surroundings);
    const [name, ...operands] = Array.isArray(argv._) ? argv._.map(String) : [];
    // Without a command it must change nothing: a person who forgets the word "plan" would start a controller with their own rights.
    const help = name === undefined && asked === '' ? (await parse(['--help'], surroundings)).help : asked;
    if (name === undefined || help !== '') {
      surroundings.print(`${help}\n`);
      return EXIT.done;
    }
    const command = COMMANDS.find((known) => known.name === name);
    if (command === undefined) throw unknownCommand(name);
    const isBeside = surroundings.controllerWords !== undefined;
    const isOneNamespace = argv.namespace !== undefined && argv['all-namespaces'] !== true;
    const refusal = isBeside && refusalBesideController(name, { isOneNamespace });
    if (refusal) throw new ConfigurationError([refusal]);
    const color = String(argv.color ?? 'auto');
    const { choices = [] } = COMMON_FLAGS.find((flag) => flag.name === 'color') ?? {};
    if (!choices.includes(color)) {
      throw new ConfigurationError([`--color: got ${JSON.stringify(color)}, expected one of ${choices.join(', ')}`]);
    }
    const colors = hasColors(color, surroundings);
    const invocation = invocationOf(command, operands, argv, { ...surroundings, colors }, connections);
    if (command.operands === '' && operands.length > 0) {
      throw new ConfigurationError([`${name}: unexpected ${JSON.stringify(operands.join(' '))}`]);
    }
    return await command.run(invocation);
  } catch (error) {
    const { lines, code } = failureLines(error, accountOf(words, surroundings));
    for (const line of lines) surroundings.note(`${surroundings.program}: ${line}`);
    return code;
  } finally {
    // A command may fail before it uses the connection over which its configuration was read.
    for (const each of connections) await each.close();
  }
}

/** Whose rights a command uses: the controller's, also by a person's `kubectl exec`, those of `clean`, or a person's who reads. */
function accountOf(words: readonly string[], { controllerWords }: Surroundings) {
  const name = words.find((word) => COMMANDS.some((command) => command.name === word));
  if (name === 'clean') return 'cleaner';
  if (name === 'run') return 'controller';
  return controllerWords === undefined ? 'reader' : 'exec';
}

/**
 * Everything that goes to standard error may quote a cluster, a registry or a file: a name, a message, a key. It reaches the
 * terminal only escaped, whichever code writes it. Standard output is escaped by its forms.
 */
function withEscapes(surroundings: Surroundings): Surroundings {
  const { note, status, ask } = surroundings;
  return {
    ...surroundings,
    // A line feed would begin a line that looks like one of the program.
    note: (line) => note(escaped(line).replaceAll('\n', '\\u000a')),
    status: status && ((line) => status(escaped(line))),
    ask: ask && ((question, signal) => ask(escaped(question), signal)),
  };
}

/** Returns the words in which `help` and `help COMMAND`, which other programs know, are written as `--help`. */
function withoutHelpCommand(words: readonly string[]): readonly string[] {
  const [first, ...others] = words;
  if (first !== 'help') return words;
  const [name] = others.filter((word) => !word.startsWith('-'));
  if (name !== undefined && !COMMANDS.some((command) => command.name === name)) throw unknownCommand(name);
  return [...others, '--help'];
}

function unknownCommand(name: string): ConfigurationError {
  const names = COMMANDS.map((command) => command.name);
  const near = nearest(name, names);
  const hint = near === undefined ? `expected one of ${names.join(', ')}` : `did you mean ${near}?`;
  return new ConfigurationError([`unknown command ${JSON.stringify(name)}; ${hint}`]);
}

function invocationOf(
  command: Command,
  operands: readonly string[],
  argv: Arguments,
  surroundings: Surroundings,
  connections: Clients[],
): Invocation {
  const keys = configFlags(argv, command);
  const text = (name: string) => (argv[name] === undefined ? undefined : String(argv[name]));
  const { forms = MACHINE_FORMS } = command;
  const form = text('output') ?? 'table';
  if (form !== 'table' && !forms.includes(form)) {
    throw new ConfigurationError([`--output: got ${JSON.stringify(form)}, expected one of ${forms.join(', ')}`]);
  }
  const output = form === 'json' || form === 'yaml' ? form : 'table';
  const common: CommonWords = {
    keys,
    configFile: text('config'),
    kubeconfig: text('kubeconfig'),
    context: text('context'),
    installation: readInstallation(text(INSTALLATION.name)),
    output,
  };
  return {
    operands,
    text,
    texts(name) {
      const value = argv[name];
      return value === undefined ? [] : [value].flat().map(String);
    },
    isSet: (name) => argv[name] === true,
    surroundings,
    output,
    form,
    configFile: common.configFile,
    context: async () => (await import('./command-context.ts')).ownContext(common, surroundings),
    async clusterContext(reading) {
      const { clusterContext } = await import('./command-context.ts');
      const context = await clusterContext(common, surroundings, configWords, reading);
      if (context.clients !== undefined) connections.push(context.clients);
      return context;
    },
  };
}

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

const HELP: Flag = { name: 'help', letter: 'h', text: '' };
const HIDDEN = { type: 'string', hidden: true } as const;

/** The widest help. Lines that are longer are hard to read, also on a wide terminal. */
const MOST_COLUMNS = 120;

/** The values of flags and operands, by their names, as yargs gives them. */
type Arguments = Readonly<Record<string, unknown>>;

/** Parses the words. `help` is the text to print instead of running anything; empty if there is none. */
async function parse(words: readonly string[], given: Surroundings): Promise<{ argv: Arguments; help: string }> {
  const { columns, program } = given;
  const named = COMMANDS.find(({ name }) => words.includes(name));
  const flags = [...COMMON_FLAGS, ...(named?.flags ?? [])];
  const normal = normalised(words, flags);
  refuseValues(normal, flags);
  const isHelpAsked = normal.some((word) => /^--help(?:=|$)/.test(word));
  const parser = createParser(program, Math.min(MOST_COLUMNS, columns ?? MOST_COLUMNS), named, isHelpAsked, words);
  let help = '';
  const argv = await parser.parseAsync(normal, {}, (_error: unknown, _argv: unknown, output: string) => {
    // The type says nothing that the name of the flag and its text do not say.
    help = output.replaceAll(/(?<!\s)\s*\[(?:string|boolean)\]$/gm, '');
  });
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
  const alias = letter === undefined ? {} : { alias: letter };
  parser.option(name, { type, ...(group === undefined ? { hidden: true } : { group, describe: text, ...alias }) });
}

/** Works around yargs, which takes for flags or operands: the `-` of `--config -`, values such as `-1s` and `- name: a`, and `-ojson`. */
function normalised(words: readonly string[], flags = COMMON_FLAGS): string[] {
  const joined: string[] = [];
  for (const word of words) {
    const before = joined.at(-1) ?? '';
    const isInput = word === STANDARD_INPUT && ['--config', '--file', '--compare'].includes(before);
    if (isInput || (/^-[\s\d]/.test(word) && /^--[^=]+$/.test(before))) joined.splice(-1, 1, `${before}=${word}`);
    else joined.push(...withoutLetters(word, flags));
  }
  return joined;
}

/** Returns `-Aojson` as kubectl reads it: `--all-namespaces` and `--output=json`. A letter that is unknown stays. */
function withoutLetters(word: string, flags: readonly Flag[]): string[] {
  const [, letter = '', rest = ''] = /^-([A-Za-z])(.*)$/s.exec(word) ?? [];
  const flag = [...flags, HELP].find((each) => each.letter === letter);
  if (letter === '' || flag === undefined) return [word];
  if (flag.value === undefined) return [`--${flag.name}`, ...(rest === '' ? [] : withoutLetters(`-${rest}`, flags))];
  return [`--${flag.name}${rest === '' ? '' : `=${rest.replace(/^=/, '')}`}`];
}

/** Returns the configuration that a command line of the controller names. Flags that are unknown here are left out. */
async function configWords(words: readonly string[]): Promise<ConfigWords> {
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
function configFlags(argv: Arguments, command: Pick<Command, 'flags' | 'forms'>): Record<string, string> {
  const paths = allKeys().map(({ path }) => path);
  const known = [...commonFlagsOf(command), ...command.flags];
  const others = [...known.map(({ name }) => name), 'help', 'version'];
  const lists = allKeys().flatMap(({ path, form }) => (form === 'list' ? [path] : []));
  const repeatable = new Set([...lists, ...known.flatMap(({ name, isRepeatable }) => (isRepeatable ? [name] : []))]);
  const flags: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(argv)) {
    if (name === '_' || name === '$0' || value === undefined) continue;
    const path = keyOf(name);
    if (path === undefined && !others.includes(name)) problems.push(unknownFlag(name, [...paths, ...others]));
    else if (Array.isArray(value) && !repeatable.has(name)) {
      problems.push(`--${name}: given ${value.length} times, expected once`);
    } else if (path !== undefined) flags[path] = textOf(value);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return flags;
}
