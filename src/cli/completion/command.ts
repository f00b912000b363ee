import { EXIT } from '../../app/surroundings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command } from '../command.ts';
import { PLUGIN, PROGRAM } from '../program.ts';

export const completionCommand: Command = {
  name: 'completion',
  operands: 'bash | zsh | fish | kubectl',
  description:
    'kubectl: the script that kubectl itself runs for `kubectl archaware`; save it as kubectl_complete-archaware.',
  summary: 'Print a script that completes commands, flags and names in a shell',
  flags: [],
  examples: [
    ['completion bash > /etc/bash_completion.d/archaware', 'Install it for every user of bash'],
    ['completion zsh > ~/.zfunc/_archaware', 'Install it for zsh, where ~/.zfunc is in fpath'],
    ['completion fish | source', 'Load it into fish; to keep it, put this line into ~/.config/fish/config.fish'],
    [
      'completion kubectl > ~/.local/bin/kubectl_complete-archaware',
      'Install it for kubectl archaware; make it executable',
    ],
  ],
  operandChoices: ['bash', 'zsh', 'fish', 'kubectl'],
  async run({ operands, surroundings }) {
    const [shell = '', ...others] = operands;
    const { SCRIPTS } = await import('./scripts.ts');
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (script === undefined || others.length > 0) {
      throw new ConfigurationError([
        `completion: got ${JSON.stringify(operands.join(' '))}, expected one of ${Object.keys(SCRIPTS).join(', ')}`,
      ]);
    }
    // The plug-in is called by the name of its file, there by kubectl and here by the shell.
    const isPlugin = surroundings.program === PLUGIN || shell === 'kubectl';
    surroundings.print(script(isPlugin ? PLUGIN.replace(' ', '-') : PROGRAM));
    return EXIT.done;
  },
};
