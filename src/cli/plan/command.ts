import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command, Invocation } from '../command.ts';
import {
  ALL_NAMESPACES,
  INSTALLATION,
  LOOKUP_TIMEOUT,
  NAMESPACE,
  readLookupTimeout,
  readNamespaceFlag,
  readSelectorFlag,
  SELECTOR,
} from '../flags.ts';

export const planCommand: Command = {
  name: 'plan',
  operands: '',
  summary: 'Show what run would write now',
  description:
    'Prints how many workloads can run where, which of them have a problem, and the changes, one row for each workload. With -n or -l it reads and plans only those pods and DaemonSets, and no nodes. It also asks the API server, by dry runs with your rights, whether it would let those pods and changes in; nothing is stored.',
  flags: [
    { ...NAMESPACE, text: 'Only this namespace; default: all' },
    ALL_NAMESPACES,
    { ...SELECTOR, text: 'Only pods and DaemonSets with these labels: app=web,tier!=db' },
    LOOKUP_TIMEOUT,
    { name: 'pods', text: 'One row for each pod instead of one for each workload' },
    { name: 'wide', text: 'All workloads and where they can run, all nodes and all names' },
    {
      name: 'pools',
      text: 'Instead: which node pools could run how many of the pods, and patches to review and apply by hand',
    },
    INSTALLATION,
  ],
  examples: [
    ['plan', 'Show every change that run would make now'],
    ['plan -n shop --pods', 'Show the changes to each pod of a namespace'],
    ['plan --wide', 'Also list every workload, with where it can run'],
    ['plan --pools', 'Show what each NodePool could run, and patches for those that lack the taint'],
    ['plan --config config.yaml', 'Show what a configuration would change'],
  ],
  async run(invocation) {
    const [byPod, isWide] = [invocation.isSet('pods'), invocation.isSet('wide')];
    const isForPools = invocation.isSet('pools');
    const scope = scopeOf(invocation);
    if (isForPools && (byPod || isWide || scope.namespace !== undefined || scope.labels !== undefined))
      throw new ConfigurationError([
        'plan: got --pools with --pods, --wide, --namespace or --selector, expected it alone: a pool is for the whole cluster',
      ]);
    const options = { scope, byPod, isWide, isForPools, lookupTimeoutMs: readLookupTimeout(invocation) };
    const { plan } = await import('./plan.ts');
    return plan(await invocation.clusterContext(), options);
  },
};

function scopeOf(invocation: Invocation) {
  const namespace = readNamespaceFlag('plan', invocation);
  const labels = invocation.text('selector');
  if (namespace === '') throw new ConfigurationError(['--namespace: got an empty text, expected a name']);
  readSelectorFlag(labels);
  return { namespace, labels: labels === '' ? undefined : labels };
}
