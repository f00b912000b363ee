import { EXIT } from '../../app/context.ts';
import { VERSION } from '../../app/version.ts';
import type { Command } from '../command.ts';
import { withoutOperands } from '../operands.ts';

export const versionCommand: Command = {
  name: 'version',
  operands: '',
  summary: 'Print the version',
  flags: [],
  examples: [['version', 'Print the version of this program']],
  async run({ operands, surroundings }) {
    withoutOperands('version', operands);
    surroundings.print(`${VERSION}\n`);
    return EXIT.done;
  },
};
