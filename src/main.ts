import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import type { Context } from './app/context.ts';
import { VERSION } from './app/version.ts';
import { type ConfigFile, readConfigFile, STANDARD_INPUT } from './config/file.ts';
import { allKeys } from './config/keys.ts';
import { loadConfig, unknownFlag } from './config/load.ts';
import { ConfigurationError } from './config/problems.ts';

const COMMON = ['kubeconfig', 'context', 'config', 'log-level', 'log-format', 'output', 'help', 'version'];
/** The flags of single commands, which are not configuration keys. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  clean: ['yes', 'dry-run', 'pods', 'timeout', 'all-pods', 'stop'],
  config: ['from'],
  explain: ['f', 'file'],
};

const EPILOGUE = `Every configuration key is a flag, and a variable (ARCHAWARE_TAINTS__NODE_SELECTOR); a flag wins over a variable
over the file over the default. Exit codes: 0 done; 1 failed; 2 plan found changes, inspect could not resolve, clean left
something; 3 usage, configuration, kubeconfig.`;

async function main(): Promise<number> {
  const parser = commandLine();
  const argv = await parser.parse();
  const [command = 'run', ...operands] = argv._.map(String);
  const flags = configFlags(argv, command);
  const form = String(argv.output ?? 'table');
  if (form !== 'table' && form !== 'json' && form !== 'yaml') {
    throw new ConfigurationError([`--output: got ${JSON.stringify(form)}, expected one of table, json, yaml`]);
  }
  if (command === 'config' && operands[0] === 'validate') {
    if (operands.length !== 2)
      throw new ConfigurationError(['config validate: expected one FILE, or a directory of label rules']);
    return (await import('./cli/config.ts')).validateConfig(operands[1] ?? '');
  }
  const from = argv.from === undefined ? undefined : String(argv.from);
  if (command === 'config' && operands[0] === 'convert') {
    return (await import('./cli/convert.ts')).convertConfig(from, operands.slice(1), form);
  }
  if (from !== undefined) throw new ConfigurationError(['--from: expected with config convert only']);
  const name = argv.config === undefined ? undefined : String(argv.config);
  if (name === STANDARD_INPUT && argv.file === STANDARD_INPUT) {
    throw new ConfigurationError([
      '--config -: got the standard input, expected a file, as -f reads the standard input',
    ]);
  }
  const load = (file: ConfigFile | undefined) => loadConfig({ file, environment: process.env, flags });
  const first = name === undefined ? undefined : readConfigFile(name);
  if (first?.note !== undefined) process.stderr.write(`${first.name}: ${first.note}\n`);
  const { config, sources } = load(first);
  // Standard input cannot be read again.
  const isWatched = name !== undefined && name !== STANDARD_INPUT;
  const context: Context = {
    config,
    sources,
    file: isWatched ? { name, load: () => load(readConfigFile(name)).config } : undefined,
    kubeconfig: argv.kubeconfig === undefined ? undefined : String(argv.kubeconfig),
    context: argv.context === undefined ? undefined : String(argv.context),
    output: form,
    signal: untilSignalled(),
  };
  switch (command) {
    case 'run':
      noOperands(command, operands);
      return (await import('./cli/run.ts')).run(context);
    case 'plan':
      noOperands(command, operands);
      return (await import('./cli/plan.ts')).plan(context);
    case 'clean':
      noOperands(command, operands);
      return (await import('./cli/clean.ts')).clean(context, {
        yes: argv.yes === true,
        dryRun: argv['dry-run'] === true,
        pods: String(argv.pods ?? 'evict'),
        timeout: String(argv.timeout ?? '10m'),
        allPods: argv['all-pods'] === true,
        stop: argv.stop === true,
      });
    case 'inspect':
      if (operands.length === 0) throw new ConfigurationError(['inspect: expected at least one IMAGE']);
      return (await import('./cli/inspect.ts')).inspect(context, operands);
    case 'config': {
      const { printConfig, printSchema } = await import('./cli/config.ts');
      if (operands[0] === 'print' && operands.length === 1) return printConfig(context);
      if (operands[0] === 'schema' && operands.length === 1) return printSchema(context);
      throw new ConfigurationError([
        `config: got ${JSON.stringify(operands.join(' '))}, expected print, schema, validate FILE or convert --from SYSTEM FILE`,
      ]);
    }
    case 'explain': {
      const { explain, explainTarget } = await import('./cli/explain.ts');
      return explain(context, explainTarget(operands, argv.file === undefined ? undefined : String(argv.file)));
    }
    default:
      throw new ConfigurationError([
        `unknown command ${JSON.stringify(command)}; expected one of run, clean, plan, inspect, explain, config`,
      ]);
  }
}

function commandLine() {
  const parser = yargs(withStandardInput(hideBin(process.argv)))
    .scriptName('archaware-controller')
    .usage(
      '$0 [run] | clean | plan | inspect IMAGE… | explain [NAMESPACE/]POD | config print|schema|validate|convert FILE',
    )
    .parserConfiguration({ 'dot-notation': false, 'camel-case-expansion': false, 'duplicate-arguments-array': true })
    .command('run', 'Taint nodes, give pods and DaemonSets their tolerations (the default)')
    .command('clean', 'Undo everything that run did')
    .command('plan', 'Show what run would write now')
    .command('inspect', 'Show the platforms of images')
    .command('explain', 'Show why a pod is placed as it is, or what would become of one in a file, and what to do')
    .command(
      'config',
      'print: each value and where it comes from; schema: JSON Schema; validate FILE (- is the standard input), or a directory of label rules; convert --from SYSTEM FILE: the settings of another system as our file',
    )
    .option('kubeconfig', {
      type: 'string',
      group: 'Common:',
      describe: 'Kubeconfig file; default: the pod we run in, else KUBECONFIG, else ~/.kube/config',
    })
    .option('context', { type: 'string', group: 'Common:', describe: 'Context of the kubeconfig' })
    .option('config', {
      type: 'string',
      group: 'Common:',
      describe: 'Configuration file (YAML; - is the standard input); also a ConfigMap or Helm values that hold one',
    })
    .option('log-level', { type: 'string', group: 'Common:', describe: 'The same as --log.level' })
    .option('log-format', { type: 'string', group: 'Common:', describe: 'The same as --log.format' })
    .option('output', { type: 'string', group: 'Common:', describe: 'Form on stdout: table, json, yaml' })
    .option('yes', { type: 'boolean', group: 'clean:', describe: 'Do not ask; needed where there is no terminal' })
    .option('dry-run', {
      type: 'boolean',
      group: 'clean:',
      describe: 'Say what would be done and what would refuse, and stop',
    })
    .option('pods', {
      type: 'string',
      group: 'clean:',
      describe: 'Pods that carry our tolerations: evict (default), delete, keep',
    })
    .option('timeout', {
      type: 'string',
      group: 'clean:',
      describe: 'How long replacing pods may go on without progress (10m)',
    })
    .option('all-pods', { type: 'boolean', group: 'clean:', describe: 'Also pods that nothing brings back' })
    .option('stop', {
      type: 'boolean',
      group: 'clean:',
      describe: 'Scale every Deployment of ours to 0 first, and wait for the leaders to end',
    })
    .option('from', {
      type: 'string',
      group: 'config:',
      describe:
        'convert: whose settings FILE (- is the standard input) has: tolerable, noe, mto (multiarch-tuning-operator)',
    })
    .option('file', {
      alias: 'f',
      type: 'string',
      group: 'explain:',
      describe: 'A pod or workload that is not applied yet (YAML; - is the standard input)',
    });
  for (const { path, description, fallback, form } of allKeys()) {
    const shown = form === 'list' && Array.isArray(fallback) ? fallback.join(',') : fallback;
    const text = typeof shown === 'string' ? shown : JSON.stringify(shown);
    parser.option(path, { type: 'string', group: 'Configuration:', describe: `${description} (${text || 'none'})` });
  }
  return parser
    .help()
    .version(VERSION)
    .epilogue(EPILOGUE)
    .wrap(Math.min(120, process.stdout.columns ?? 120))
    .exitProcess(true)
    .fail((message, error) => {
      throw error ?? new ConfigurationError([message]);
    });
}

/** Works around yargs, which treats the `-` of `--config -` as an operand, but not that of `-f -`. */
function withStandardInput(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of words) {
    const before = joined.at(-1) ?? '';
    if (word === STANDARD_INPUT && ['--config', '--file'].includes(before)) joined.splice(-1, 1, `${before}=${word}`);
    else joined.push(word);
  }
  return joined;
}

/** Returns the flags that are configuration keys, as text. Refuses any other flag that is neither common nor of this command. */
function configFlags(argv: Readonly<Record<string, unknown>>, command: string): Record<string, string> {
  const keys = allKeys();
  const paths = keys.map(({ path }) => path);
  const others = [...COMMON, ...(OWN[command] ?? [])];
  const flags: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(argv)) {
    if (name === '_' || name === '$0' || value === undefined) continue;
    const path = name === 'log-level' ? 'log.level' : name === 'log-format' ? 'log.format' : name;
    if (paths.includes(path)) flags[path] = Array.isArray(value) ? value.join(',') : String(value);
    else if (!others.includes(name)) problems.push(unknownFlag(name, [...paths, ...others]));
    else if (Array.isArray(value)) problems.push(`--${name}: given ${value.length} times, expected once`);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return flags;
}

function noOperands(command: string, operands: readonly string[]): void {
  if (operands.length > 0)
    throw new ConfigurationError([`${command}: unexpected ${JSON.stringify(operands.join(' '))}`]);
}

/** Aborts at the first SIGTERM or SIGINT; the second ends the process at once. */
function untilSignalled(): AbortSignal {
  const controller = new AbortController();
  for (const [name, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
  ] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(128 + number);
      controller.abort();
    });
  }
  return controller.signal;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    // One line that says what to do is more useful than a stack trace.
    for (const line of describe(error).split('\n')) process.stderr.write(`archaware-controller: ${line}\n`);
    const named = new Set(['ConfigurationError', 'KubeconfigError']);
    process.exitCode = error instanceof Error && named.has(error.name) ? 3 : 1;
  },
);

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return 'interrupted';
  const status = error.name === 'ApiError' && 'status' in error ? error.status : undefined;
  if (status === 403) return `${error.message}; grant it the roles in manifests/archaware-controller.yaml`;
  if (status === 401) return `${error.message}; log in again, or name other credentials with --kubeconfig or --context`;
  return error.message;
}
