import { STANDARD_INPUT } from '../../config/config-file.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { ARCHITECTURES } from '../../kit/platform.ts';
import type { Command } from '../command.ts';
import { DEEP, FILES, inputProblems, LOOKUP_TIMEOUT, NAMESPACE, outputFlag, readLookupTimeout } from '../flags.ts';
import { readArchitectures } from '../report/options.ts';

const FORMS: readonly string[] = ['table', 'json', 'yaml', 'markdown'];

export const checkCommand: Command = {
  name: 'check',
  operands: '',
  summary: 'Check that the images in manifests run on architectures; for pipelines',
  description:
    'Asks the registries. Needs no cluster, except with --compare cluster. Exits with 2 and prints one line for each image that lacks or, with --compare, has dropped an architecture, or that could not be looked up. With --deep, an architecture whose program is for another one is missing, too.',
  forms: FORMS,
  flags: [
    { ...FILES, text: 'Files or directories with workloads (YAML or JSON; - is standard input)' },
    {
      name: 'on',
      value: 'ARCH,…',
      isRepeatable: true,
      choices: ARCHITECTURES,
      text: 'Architectures on which every image must run; required without --compare, and only these are compared with it',
    },
    {
      name: 'compare',
      value: 'OLD',
      isRepeatable: true,
      text: 'Manifests as they were (file, directory or -), or cluster: the workloads that run now. Finds the architectures that the new images lack',
    },
    { ...NAMESPACE, text: 'Namespace of objects that name none, for policies; default: default' },
    DEEP,
    LOOKUP_TIMEOUT,
    outputFlag(FORMS),
  ],
  examples: [
    ['check -f deployment.yaml --on amd64,arm64', 'Check a manifest'],
    ['check -f manifests/ --on arm64 -o markdown', 'Write the comment for a pull request'],
    [
      'check -f manifests/ --on amd64,arm64 --deep',
      'Check also that the programs in the images are for these architectures',
    ],
    ['check -f - --on amd64,arm64', 'Check what helm template or kustomize build prints'],
    ['check --compare old.yaml -f new.yaml', 'Find the architectures that an update drops'],
    ['check --compare cluster -f - -o markdown', 'The same against what runs now, for a pull request'],
  ],
  async run(invocation) {
    const files = invocation.texts('file');
    const old = invocation.texts('compare');
    const on = readArchitectures('--on', invocation.texts('on'));
    const problems = [
      ...(files.length === 0 ? ['check: expected -f FILE with the manifests to check'] : []),
      ...(on === undefined && old.length === 0
        ? ['check: expected --on with the architectures to run on, for example --on amd64,arm64']
        : []),
      ...compareProblems(old, files),
      ...inputProblems(invocation, [...files, ...old]),
    ];
    if (problems.length > 0) throw new ConfigurationError(problems);
    const lookupTimeoutMs = readLookupTimeout(invocation);
    const common = { form: invocation.form, files, namespace: invocation.text('namespace'), lookupTimeoutMs };
    const isDeep = invocation.isSet(DEEP.name);
    if (old.length > 0 || on === undefined) {
      if (isDeep) throw new ConfigurationError(['--deep: not possible with --compare; run check --deep on its own']);
      const { compare } = await import('./run-compare.ts');
      const before = old.includes(CLUSTER) ? undefined : old;
      return compare(await invocation.context(), { ...common, on, before });
    }
    const { check } = await import('./run-check.ts');
    return check(await invocation.context(), { ...common, on, isDeep });
  },
};

/** The value of `--compare` for what runs now. A file of this name is `./cluster`. */
const CLUSTER = 'cluster';

function compareProblems(old: readonly string[], files: readonly string[]): string[] {
  return [
    ...(old.includes(CLUSTER) && old.length > 1
      ? [`--compare: got ${CLUSTER} and files, expected one of them; a file of this name is ./${CLUSTER}`]
      : []),
    ...(old.includes(STANDARD_INPUT) && files.includes(STANDARD_INPUT)
      ? ['--compare -: got standard input, expected a file, because -f reads standard input']
      : []),
  ];
}
