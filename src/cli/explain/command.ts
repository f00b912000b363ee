import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Command, Invocation } from '../command.ts';
import { FILES, INSTALLATION, inputProblems, LOOKUP_TIMEOUT, NAMESPACE, readLookupTimeout } from '../flags.ts';
import { KINDS } from '../survey/kind-paths.ts';
import { type ExplainTarget, explainTarget } from './target.ts';

export const explainCommand: Command = {
  name: 'explain',
  operands: '[KIND/]NAME',
  summary: 'Show where a pod can run and why, and what to do if it cannot; with -f for an object in a file',
  description: 'Without KIND it is a pod; NAMESPACE/POD is understood too.',
  hasPodOperands: true,
  operandChoices: KINDS.flatMap(({ kind, names: [name = ''] }) => (kind === 'Pod' ? [] : [`${name}/`])),
  flags: [
    NAMESPACE,
    {
      ...FILES,
      text: 'File or directory with pods or workloads that are not applied yet (YAML; - is standard input); repeatable',
    },
    {
      name: 'verbose',
      letter: 'v',
      text: 'Also digests, settings, tolerations, and how each image narrows where the pod can run',
    },
    INSTALLATION,
    LOOKUP_TIMEOUT,
  ],
  examples: [
    ['explain -n shop web-7d4b9-x2x1z', 'Explain a pod of the namespace shop'],
    ['explain -n shop deployment/web -o json', 'Explain the pods that a Deployment will create, for a program'],
    ['explain namespace/shop', 'Show what runs where in a namespace, what waits, and what is held back'],
    ['explain -f deployment.yaml', 'Explain the workloads of a file before they are applied'],
  ],
  async run(invocation) {
    const files = invocation.texts('file');
    const problems = inputProblems(invocation, files);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const target = explainTarget(invocation.operands, files, invocation.text('namespace'));
    if (target.kind === 'namespace') {
      const [{ report }, { teamReport }] = await Promise.all([
        import('../report/run-report.ts'),
        import('../report/options.ts'),
      ]);
      return report(await invocation.clusterContext(), teamReport(invocation, target.name));
    }
    const { explain } = await import('./run-explain.ts');
    const options = { lookupTimeoutMs: readLookupTimeout(invocation), isVerbose: invocation.isSet('verbose') };
    return explain(await contextFor(invocation, target), target, options);
  },
};

/** Loads the cluster's configuration. A file can be explained without a cluster, by the defaults. */
async function contextFor(invocation: Invocation, target: ExplainTarget) {
  try {
    return await invocation.clusterContext();
  } catch (error) {
    const { isAway } = await import('../command-context.ts');
    if (target.kind !== 'files' || !isAway(error)) throw error;
    return invocation.context();
  }
}
