import { ConfigurationError } from '../../config/shown-problems.ts';
import { ARCHITECTURES } from '../../kit/platform.ts';
import type { Command } from '../command.ts';
import { ALL_NAMESPACES, FILES, INSTALLATION, inputProblems, LOOKUP_TIMEOUT, outputFlag, SELECTOR } from '../flags.ts';
import { reportOptions } from './options.ts';

/** What `--output` of the report can be. */
const FORMS: readonly string[] = ['table', 'json', 'yaml', 'html'];

export const reportCommand: Command = {
  name: 'report',
  operands: '',
  summary: 'Show which workloads can run on another architecture, and what holds the others back',
  description:
    'Reads a cluster, where archaware need not be installed and the right to read is enough, or files (-f), and asks the registries.',
  forms: FORMS,
  flags: [
    {
      name: 'to',
      value: 'ARCH,…',
      isRepeatable: true,
      choices: ARCHITECTURES,
      text: 'Architectures to move to; default: report.targets, else those of the nodes and of the images, within architectures.schedulable',
    },
    { name: 'namespace', letter: 'n', value: 'NAME', text: 'Only this namespace; default: all namespaces' },
    ALL_NAMESPACES,
    SELECTOR,
    { ...FILES, text: 'Files or directories with workloads instead of a cluster (YAML or JSON; - is standard input)' },
    {
      name: 'group-by',
      value: 'WHAT',
      choices: ['namespace', 'label:', 'registry'],
      text: 'Also sum up by namespace, label:KEY or registry',
    },
    {
      name: 'for-team',
      text: 'For the people of one --namespace: what runs where, what waits, and what is held back by which image',
    },
    { name: 'newer', text: 'Ask the registries for newer tags of the images that block' },
    {
      name: 'fail-under',
      value: 'PERCENT',
      text: 'Exit with 2 if less of the requested CPU, or of the replicas that request none, is ready for the one --to; unknown counts as not ready',
    },
    {
      name: 'price',
      value: 'ARCH=AMOUNT,…',
      isRepeatable: true,
      text: 'What a core costs for an hour: also show what the requested cores cost, and what a move saves',
    },
    {
      name: 'price-memory',
      value: 'ARCH=AMOUNT,…',
      isRepeatable: true,
      text: 'What a gibibyte of memory costs for an hour, beside --price',
    },
    {
      name: 'price-file',
      value: 'FILE',
      text: 'Prices of nodes by one of their labels, such as the instance type (YAML)',
    },
    LOOKUP_TIMEOUT,
    outputFlag(FORMS),
    INSTALLATION,
  ],
  examples: [
    ['report --to arm64', 'Show what can move to arm64, and which rebuild helps most'],
    ['report --to arm64 -o html > report.html', 'Write a page to pass on'],
    ['report -n shop --for-team', 'Show a team what runs where, what waits and what holds it back'],
    ['report --to arm64 --price amd64=0.0408,arm64=0.0321', 'Show what a move would save'],
    ['report -f manifests/ --to arm64 --fail-under 90', 'Fail if less than 90 % of the CPU in a directory is ready'],
  ],
  async run(invocation) {
    const options = reportOptions(invocation);
    const problems = inputProblems(invocation, options.files);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const { report } = await import('./run-report.ts');
    return report(await (options.files.length > 0 ? invocation.context() : invocation.clusterContext()), options);
  },
};
