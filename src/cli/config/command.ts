import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command } from '../command.ts';

export const configCommand: Command = {
  name: 'config',
  operands: 'print [KEY…] | schema | validate FILE | convert --from SYSTEM FILE',
  summary: 'Print, check and convert configurations',
  description: `print      show each value and its source
schema     print the JSON Schema of the configuration file
validate   check FILE (- is standard input), or a directory of label rules
convert    print the settings of another system as a configuration file of archaware`,
  operandChoices: ['print', 'schema', 'validate', 'convert'],
  listsKeys: true,
  actionsWithoutKeys: ['schema', 'validate', 'convert'],
  flags: [
    { name: 'changed', text: 'print: only keys whose value is not the default' },
    {
      name: 'from',
      value: 'SYSTEM',
      choices: ['tolerable', 'noe', 'mto'],
      text: 'convert: the system whose settings are in FILE (- is standard input): tolerable, noe, mto (multiarch-tuning-operator)',
    },
  ],
  examples: [
    ['config print taints images.fallbackAfter', 'Show some values and where they come from'],
    ['config print --changed --config config.yaml', 'Show what a file changes'],
    ['config validate config.yaml', 'Check a file before it is applied'],
    ['config convert --from mto podplacement.yaml', 'Convert the settings of multiarch-tuning-operator'],
  ],
  async run(invocation) {
    const [action, ...rest] = invocation.operands;
    if (action === 'validate') {
      if (rest.length !== 1)
        throw new ConfigurationError(['config validate: expected one FILE, or a directory of label rules']);
      return (await import('./config.ts')).validateConfig(rest[0] ?? '', invocation.output, invocation.surroundings);
    }
    const from = invocation.text('from');
    if (action === 'convert') {
      const { convertConfig } = await import('./convert.ts');
      return convertConfig(from, rest, invocation.output, invocation.surroundings);
    }
    if (from !== undefined) throw new ConfigurationError(['--from: only allowed with config convert']);
    const context = await invocation.context();
    const { printConfig, printSchema } = await import('./config.ts');
    if (action === 'print') return printConfig(context, rest, invocation.isSet('changed'));
    if (action === 'schema' && rest.length === 0) return printSchema(context);
    throw new ConfigurationError([
      `config: got ${JSON.stringify(invocation.operands.join(' '))}, expected print, schema, validate FILE or convert --from SYSTEM FILE`,
    ]);
  },
};
