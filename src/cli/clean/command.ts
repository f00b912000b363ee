import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command } from '../command.ts';
import { INSTALLATION } from '../flags.ts';

export const cleanCommand: Command = {
  name: 'clean',
  operands: '',
  summary: 'Remove everything that run wrote',
  flags: [
    INSTALLATION,
    { name: 'yes', text: 'Do not ask for confirmation; required without a terminal' },
    { name: 'dry-run', text: 'Show what clean would do, and what would prevent it; change nothing' },
    { name: 'stop', text: 'Scale the Deployment of archaware to 0 first, and wait for the leader to end' },
    {
      name: 'pods',
      value: 'HOW',
      choices: ['restart', 'keep'],
      text: 'Pods with tolerations or affinity of archaware: restart their Deployments and StatefulSets (default on a terminal), keep',
    },
  ],
  examples: [
    ['clean --dry-run', 'Show what would be done, and why clean would refuse'],
    ['clean --stop --yes', 'End the controller, then remove everything that it wrote'],
    [
      'clean --stop --yes --pods restart',
      'The same, and restart the Deployments and StatefulSets whose pods carry tolerations',
    ],
  ],
  async run(invocation) {
    const flags = {
      yes: invocation.isSet('yes'),
      dryRun: invocation.isSet('dry-run'),
      pods: podsFlag(invocation.text('pods')),
      stop: invocation.isSet('stop'),
    };
    const { clean } = await import('./clean.ts');
    return clean(await invocation.clusterContext(), flags);
  },
};

function podsFlag(text: string | undefined): 'restart' | 'keep' | undefined {
  if (text === undefined || text === 'restart' || text === 'keep') return text;
  throw new ConfigurationError([`--pods: got ${JSON.stringify(text)}, expected one of restart, keep`]);
}
