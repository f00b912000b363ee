import { STANDARD_INPUT } from '../config/config-file.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { parseDuration } from '../kit/duration.ts';
import { messageOf } from '../kit/errors.ts';
import { parseSelector, type Selector } from '../kit/label-syntax.ts';
import type { Installation } from '../kube/installation.ts';
import type { Command, Flag, Invocation } from './command.ts';

/** The flags that several commands have, with kubectl's names. */
export const NAMESPACE: Flag = {
  name: 'namespace',
  letter: 'n',
  value: 'NAME',
  text: 'Namespace; default: the one of the context',
};
export const ALL_NAMESPACES: Flag = { name: 'all-namespaces', letter: 'A', text: 'All namespaces' };
export const SELECTOR: Flag = {
  name: 'selector',
  letter: 'l',
  value: 'LABELS',
  text: 'Only objects with these labels: app=web,tier!=db',
};
export const FILES: Omit<Flag, 'text'> = { name: 'file', letter: 'f', value: 'FILE', isRepeatable: true };
/** For the commands that read the configuration of the installation. */
export const INSTALLATION: Flag = {
  name: 'installation',
  value: 'NAMESPACE/NAME',
  text: 'Deployment of archaware; default: archaware/archaware-controller, in a pod the one of its namespace',
};

/** Reads the flag. Throws ConfigurationError. */
export function readInstallation(text: string | undefined): Installation | undefined {
  if (text === undefined) return undefined;
  const [, namespace, name] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? [];
  if (namespace !== undefined && name !== undefined) return { namespace, name };
  throw new ConfigurationError([
    `--${INSTALLATION.name}: got ${JSON.stringify(text)}, expected NAMESPACE/NAME of a Deployment, such as archaware/archaware-controller`,
  ]);
}

/** What `--output` of most commands can be. */
export const MACHINE_FORMS: readonly string[] = ['table', 'json', 'yaml'];

/** The flag `--output` of a command that has these forms. */
export function outputFlag(forms: readonly string[]): Flag {
  return { name: 'output', letter: 'o', value: 'FORM', choices: forms, text: `Output format: ${forms.join(', ')}` };
}

/** The flags of every command. */
export const COMMON_FLAGS: readonly Flag[] = [
  {
    name: 'kubeconfig',
    value: 'FILE',
    text: 'Kubeconfig file (its proxy-url, or HTTPS_PROXY, is used); default: the service account of the pod, else KUBECONFIG, else ~/.kube/config',
  },
  { name: 'context', value: 'NAME', text: 'Context of the kubeconfig' },
  {
    name: 'config',
    value: 'FILE',
    text: 'Configuration file (YAML; - is standard input), or a ConfigMap or Helm values that contain one',
  },
  outputFlag(MACHINE_FORMS),
  {
    name: 'color',
    value: 'WHEN',
    choices: ['auto', 'always', 'never'],
    text: 'Color results: auto (at a terminal, unless NO_COLOR is set), always, never',
  },
  { name: 'log-level', value: 'LEVEL', text: 'The same as --log.level' },
  { name: 'log-format', value: 'FORMAT', text: 'The same as --log.format' },
];

/** Returns those of the common flags that a command has. It may have one of its own of that name, with other values. */
export function commonFlagsOf(command: Pick<Command, 'flags' | 'forms'> | undefined): Flag[] {
  const isOwn = ({ name }: Flag) => command?.flags.some((own) => own.name === name) === true;
  return COMMON_FLAGS.filter((flag) => !isOwn(flag) && (flag.name !== 'output' || command?.forms?.length !== 0));
}

/** Reads the namespace that a command is limited to; undefined: all. Throws ConfigurationError for two answers to that. */
export function readNamespaceFlag(
  command: string,
  { text, isSet }: Pick<Invocation, 'text' | 'isSet'>,
): string | undefined {
  const namespace = text(NAMESPACE.name);
  if (namespace === undefined || !isSet(ALL_NAMESPACES.name)) return namespace;
  throw new ConfigurationError([`${command}: got --namespace and --all-namespaces, expected one of them`]);
}

/** Reads labels; none if the flag is not given. Throws ConfigurationError. */
export function readSelectorFlag(text = ''): Selector {
  try {
    return parseSelector(text);
  } catch (error) {
    throw new ConfigurationError([`--selector: ${messageOf(error)}`]);
  }
}

/** Returns the problem of a command line that reads standard input twice; none if it does not. `files`: the values of `-f`. */
export function inputProblems({ configFile }: Pick<Invocation, 'configFile'>, files: readonly string[]): string[] {
  const isTwice = configFile === STANDARD_INPUT && files.includes(STANDARD_INPUT);
  return isTwice ? ['--config -: got standard input, expected a file, because -f reads standard input'] : [];
}

/** For the commands that can read what images start. */
export const DEEP: Flag = {
  name: 'deep',
  text: 'Also download the layers that hold the program that each platform starts, and read for which CPU it is',
};

/** The flag of every command that asks registries. */
export const LOOKUP_TIMEOUT: Flag = {
  name: 'lookup-timeout',
  value: 'DURATION',
  text: 'How long to retry lookups that fail for the moment, all together; 0s: no retry; default: 2m, longer while images become known',
};

/** Reads the flag, in milliseconds; undefined: it is not given. Throws ConfigurationError. */
export function readLookupTimeout({ text }: Pick<Invocation, 'text'>): number | undefined {
  const given = text(LOOKUP_TIMEOUT.name);
  if (given === undefined) return undefined;
  const milliseconds = parseDuration(given);
  if (milliseconds !== undefined && Number.isFinite(milliseconds)) return milliseconds;
  throw new ConfigurationError([
    `--${LOOKUP_TIMEOUT.name}: got ${JSON.stringify(given)}, expected a duration, such as 30s or 2m`,
  ]);
}
