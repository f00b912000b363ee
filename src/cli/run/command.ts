import { EXIT } from '../../app/surroundings.ts';
import type { Command } from '../command.ts';

export const runCommand: Command = {
  name: 'run',
  operands: '',
  summary: 'Taint nodes, and give pods and DaemonSets their tolerations or affinity',
  flags: [],
  forms: [],
  examples: [
    ['run', 'Run on the cluster of the current context'],
    ['run --config config.yaml', 'Run with a configuration file, which is read again when it changes'],
    ['run --placement.mode both --log.level debug', 'Set configuration keys on the command line'],
  ],
  async run(invocation) {
    const context = await invocation.context();
    const { runReplica } = await import('../../app/replica/replica.ts');
    // After SIGTERM during the start, an interrupted request is not a failure.
    await runReplica(context).catch((error: unknown) => {
      if (!context.signal.aborted) throw error;
    });
    return EXIT.done;
  },
};
