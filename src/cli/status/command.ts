import type { Command } from '../command.ts';
import { INSTALLATION, NAMESPACE } from '../flags.ts';

export const statusCommand: Command = {
  name: 'status',
  operands: '',
  summary: 'Show whether the controller works, and what to do if not',
  description:
    'Reads the cluster and what the leader wrote about its work, tries the webhook and the guard of DaemonSets with dry runs, and writes nothing. If a right is missing, the line that needs it names the right.',
  flags: [
    {
      ...NAMESPACE,
      text: 'Test the webhook with a dry run of a pod in this namespace, and not in one that status chooses',
    },
    INSTALLATION,
  ],
  examples: [
    ['status', 'Show version, leader, nodes, pods and problems'],
    ['status -n shop', 'Test in the namespace shop whether the API server reaches the webhook'],
    ['status -o json', 'Print the same for a program'],
  ],
  async run(invocation) {
    // The controller goes on with its last valid configuration, and the person on call must see how.
    const context = await invocation.clusterContext({ toleratesMistakes: true });
    return (await import('./status.ts')).status(context, invocation.text('namespace'));
  },
};
