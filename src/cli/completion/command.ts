import { EXIT } from '../../app/context.ts';
import { ConfigurationError } from '../../config/problems.ts';
import type { Command } from '../command.ts';
import { PROGRAM } from '../program.ts';

export const completionCommand: Command = {
  name: 'completion',
  operands: 'bash | zsh | fish',
  summary: 'Print a script that completes commands, flags and names in a shell',
  flags: [],
  examples: [
    ['completion bash > /etc/bash_completion.d/archaware-controller', 'Install it for every user of bash'],
    ['completion zsh > ~/.zfunc/_archaware-controller', 'Install it for zsh, where ~/.zfunc is in fpath'],
    ['completion fish > ~/.config/fish/completions/archaware-controller.fish', 'Install it for fish'],
  ],
  operandChoices: ['bash', 'zsh', 'fish'],
  async run({ operands, surroundings }) {
    const [shell = '', ...others] = operands;
    const { SCRIPTS } = await import('./scripts.ts');
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (script === undefined || others.length > 0) {
      throw new ConfigurationError([
        `completion: got ${JSON.stringify(operands.join(' '))}, expected one of ${Object.keys(SCRIPTS).join(', ')}`,
      ]);
    }
    surroundings.print(script(PROGRAM));
    return EXIT.done;
  },
};
