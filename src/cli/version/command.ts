import { EXIT } from '../../app/surroundings.ts';
import { VERSION } from '../../app/version.ts';
import type { Command } from '../command.ts';
import { valueText } from '../output.ts';

export const versionCommand: Command = {
  name: 'version',
  operands: '',
  summary: 'Print the version',
  flags: [],
  examples: [
    ['version', 'Print the version of this program'],
    ['version -o json', 'Print it for a program'],
  ],
  async run({ output, surroundings }) {
    surroundings.print(output === 'table' ? `${VERSION}\n` : valueText({ version: VERSION }, output));
    return EXIT.done;
  },
};
