import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command } from '../command.ts';

export const configCommand: Command = {
  name: 'config',
  operands: 'print [KEY…] | schema | validate FILE',
  summary: 'Print and check configurations',
  description: `print      show each value and its source
schema     print the JSON Schema of the configuration file
validate   check FILE (- is standard input), or a directory of label rules`,
  operandChoices: ['print', 'schema', 'validate'],
  listsKeys: true,
  actionsWithoutKeys: ['schema', 'validate'],
  flags: [{ name: 'changed', text: 'print: only keys whose value is not the default' }],
  examples: [
    ['config print taints images.fallbackAfter', 'Show some values and where they come from'],
    ['config print --changed --config config.yaml', 'Show what a file changes'],
    ['config validate config.yaml', 'Check a file before it is applied'],
  ],
  async run(invocation) {
    const [action, ...rest] = invocation.operands;
    if (action === 'validate') {
      if (rest.length !== 1)
        throw new ConfigurationError(['config validate: expected one FILE, or a directory of label rules']);
      return (await import('./config.ts')).validateConfig(rest[0] ?? '', invocation.output, invocation.surroundings);
    }
    const context = await invocation.context();
    const { printConfig, printSchema } = await import('./config.ts');
    if (action === 'print') return printConfig(context, rest, invocation.isSet('changed'));
    if (action === 'schema' && rest.length === 0) return printSchema(context);
    const instead = action === 'convert' ? '; docs/migrating.md has tables of the settings of other systems' : '';
    throw new ConfigurationError([
      `config: got ${JSON.stringify(invocation.operands.join(' '))}, expected print, schema or validate FILE${instead}`,
    ]);
  },
};
