import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command, Flag } from '../command.ts';
import { DEEP, LOOKUP_TIMEOUT, readLookupTimeout } from '../flags.ts';

const VERBOSE: Flag = {
  name: 'verbose',
  letter: 'v',
  text: 'Also print each request on standard error: its host, status, time, and the name of its login',
};

export const inspectCommand: Command = {
  name: 'inspect',
  operands: 'IMAGE…',
  summary: 'Show the platforms of images',
  description:
    'Asks the registries, as the controller would. Needs no cluster. Exits with 2 if an image could not be resolved, or, with --deep, if a program is not for the platform that the image declares.',
  flags: [DEEP, LOOKUP_TIMEOUT, VERBOSE],
  examples: [
    ['inspect nginx:1.29', 'Show the platforms of an image'],
    ['inspect nginx redis:8 --output json', 'Print the platforms of several images for a program'],
    [
      'inspect --deep nginx:1.29',
      'Also read, out of the layers, for which CPU the program is that each platform starts',
    ],
    ['inspect registry.local:5000/web:1 --registries.insecure registry.local:5000', 'Ask a registry over plain http'],
  ],
  async run(invocation) {
    const { operands } = invocation;
    const context = await invocation.context();
    if (operands.length === 0) throw new ConfigurationError(['inspect: expected at least one IMAGE']);
    const { inspect } = await import('./inspect.ts');
    return inspect(context, operands, {
      lookupTimeoutMs: readLookupTimeout(invocation),
      isDeep: invocation.isSet(DEEP.name),
      isVerbose: invocation.isSet(VERBOSE.name),
    });
  },
};
