import { type Clients, EXIT, type Surroundings } from '../app/surroundings.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { nearest } from '../kit/nearest.ts';
import type { Command, Invocation } from './command.ts';
import type { CommonWords } from './command-context.ts';
import { type Arguments, configFlags, configWords, parse } from './command-words.ts';
import { COMMANDS } from './commands.ts';
import { refusalBesideController } from './deployed.ts';
import { failureLines } from './failure.ts';
import { INSTALLATION, MACHINE_FORMS, readInstallation } from './flags.ts';
import { escaped } from './output.ts';
import { hasColors } from './paint.ts';

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
    const refusal = isBeside && refusalBesideController(name, scopeOf(argv));
    if (refusal) throw new ConfigurationError([refusal]);
    const colors = hasColors(String(argv.color ?? 'auto'), surroundings);
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
    note: (line) => note(escaped(line)),
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

const scopeOf = (argv: Arguments) => ({
  isOneNamespace: argv.namespace !== undefined && argv['all-namespaces'] !== true,
});

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
    async clusterContext() {
      const { clusterContext } = await import('./command-context.ts');
      const context = await clusterContext(common, surroundings, configWords);
      if (context.clients !== undefined) connections.push(context.clients);
      return context;
    },
  };
}
