import { ConfigurationError } from '../../config/shown-problems.ts';
import { ARCHITECTURES } from '../../kit/platform.ts';
import type { Command } from '../command.ts';
import { inputProblems, LOOKUP_TIMEOUT, readLookupTimeout } from '../flags.ts';
import { readArchitectures } from '../report/options.ts';

const FORMS: readonly string[] = ['table', 'json', 'yaml', 'markdown'];

export const checkCommand: Command = {
  name: 'check',
  operands: '',
  summary: 'Check that the images in manifests run on architectures; for pipelines',
  description:
    'Asks the registries. Needs no cluster. Exits with 2 and prints one line for each image that lacks an architecture or could not be looked up.',
  forms: FORMS,
  flags: [
    {
      name: 'file',
      letter: 'f',
      value: 'FILE',
      isRepeatable: true,
      text: 'Files or directories with workloads (YAML or JSON; - is standard input)',
    },
    {
      name: 'on',
      value: 'ARCH,…',
      isRepeatable: true,
      choices: ARCHITECTURES,
      text: 'Architectures on which every image must run; required',
    },
    {
      name: 'namespace',
      letter: 'n',
      value: 'NAME',
      text: 'Namespace of objects that name none, for policies; default: default',
    },
    LOOKUP_TIMEOUT,
    { name: 'output', letter: 'o', value: 'FORM', choices: FORMS, text: `Output format: ${FORMS.join(', ')}` },
  ],
  examples: [
    ['check -f deployment.yaml --on amd64,arm64', 'Check a manifest'],
    ['check -f manifests/ --on arm64 -o markdown', 'Write the comment for a pull request'],
    ['check -f - --on amd64,arm64', 'Check what helm template or kustomize build prints'],
  ],
  async run(invocation) {
    const files = invocation.texts('file');
    const on = readArchitectures('--on', invocation.texts('on'));
    const problems = [
      ...(files.length === 0 ? ['check: expected -f FILE with the manifests to check'] : []),
      ...(on === undefined
        ? ['check: expected --on with the architectures to run on, for example --on amd64,arm64']
        : []),
      ...inputProblems(invocation, files),
    ];
    if (on === undefined || problems.length > 0) throw new ConfigurationError(problems);
    const { check } = await import('./run-check.ts');
    return check(await invocation.context(), {
      form: invocation.form,
      files,
      on,
      namespace: invocation.text('namespace'),
      lookupTimeoutMs: readLookupTimeout(invocation),
    });
  },
};
