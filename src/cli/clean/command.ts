import { ConfigurationError } from '../../config/shown-problems.ts';
import { parseDuration } from '../../kit/duration.ts';
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
    { name: 'stop', text: 'Scale every Deployment of archaware to 0 first, and wait for the leaders to end' },
    {
      name: 'pods',
      value: 'HOW',
      choices: ['evict', 'keep'],
      text: 'Pods that carry tolerations of archaware: evict (default), keep',
    },
    { name: 'timeout', value: 'DURATION', text: 'Give up when no pod was replaced for this time (10m)' },
  ],
  examples: [
    ['clean --dry-run', 'Show what would be done, and why clean would refuse'],
    ['clean --stop --yes', 'End the controller, then remove everything that it wrote'],
    ['clean --stop --yes --pods keep', 'The same, without replacing a pod'],
  ],
  async run(invocation) {
    const flags = {
      yes: invocation.isSet('yes'),
      dryRun: invocation.isSet('dry-run'),
      pods: podsFlag(invocation.text('pods') ?? 'evict'),
      timeoutMs: timeoutFlag(invocation.text('timeout') ?? '10m'),
      stop: invocation.isSet('stop'),
    };
    const { clean } = await import('./clean.ts');
    // Several controllers are a reason to refuse, or to stop them all, and not to ask which one is meant.
    return clean(await invocation.clusterContext({ mayBeSeveral: true }), flags);
  },
};

function podsFlag(text: string): 'evict' | 'keep' {
  if (text === 'evict' || text === 'keep') return text;
  throw new ConfigurationError([`--pods: got ${JSON.stringify(text)}, expected one of evict, keep`]);
}

function timeoutFlag(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new ConfigurationError([`--timeout: got "${text}", expected a duration, such as 30s or 10m`]);
}
