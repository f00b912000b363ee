import { ConfigurationError } from '../../../config/shown-problems.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../../kit/json.ts';
import type { Draft } from './conversion.ts';
import { flattenLists, readDocuments } from './documents.ts';

/** Noe's flags by name, each with its last value; a flag without a value, such as `--leader-elect`, is `true`. */
export type Flags = ReadonlyMap<string, string>;

/** Where Noe's settings come from: its arguments, or the values of its Helm chart. */
export type NoeSettings =
  | { readonly kind: 'arguments'; readonly words: readonly string[] }
  | { readonly kind: 'values'; readonly values: JsonObject };

/** The flags of Noe that take a value; the Boolean ones are separate because they take no word after them. */
const TEXT_FLAGS = (
  'preferred-arch cluster-schedulable-archs system-os metrics-addr health-probe-addr cert-dir ' +
  'registry-proxies match-node-labels image-credential-provider-bin-dir ' +
  'image-credential-provider-config private-registries kubeconfig'
).split(' ');
const BOOLEAN_FLAGS = ['leader-elect'];
const NAMES: ReadonlySet<string> = new Set([...TEXT_FLAGS, ...BOOLEAN_FLAGS]);

/** Keys that identify the values of Noe's chart; its other keys occur in nearly every chart. */
const VALUES = (
  'schedulableArchitectures proxies matchNodeLabels kubeletConfig privateRegistries ' +
  'dockerConfigPathCandidates containerdConfigPathCandidates ha image'
).split(' ');

/**
 * Finds out by its content what a file is: a command line, a list of arguments, a manifest with them, or Helm values.
 *
 * @throws ConfigurationError if it is none of these
 */
export function readNoeSettings(file: string, text: string): NoeSettings {
  const words = splitWords(text);
  const [first = ''] = words;
  if (/^--?[a-z]/.test(first) || /(?:^|\/)noe$/.test(first)) {
    return { kind: 'arguments', words: first.startsWith('-') ? words : words.slice(1) };
  }
  const documents = readDocuments(file, text);
  const [document] = documents;
  if (documents.length === 1 && isTexts(document)) return { kind: 'arguments', words: document };
  const containers = flattenLists(documents).flatMap((object) => argumentsIn(object));
  const [found] = containers;
  if (found !== undefined && containers.length === 1) return { kind: 'arguments', words: found };
  if (
    containers.length === 0 &&
    documents.length === 1 &&
    isObject(document) &&
    stringAt(document, 'kind') === undefined
  ) {
    if (Object.keys(document).some((key) => VALUES.includes(key))) return { kind: 'values', values: document };
  }
  throw new ConfigurationError([
    `${file}: got ${containers.length} containers with flags of Noe, expected its flags, a manifest with one container that has ` +
      `them, or values of its Helm chart (${VALUES.join(', ')})`,
  ]);
}

/**
 * Parses arguments as Go's `flag` does: `-name`, `--name`, `name=value` or `name value`; the last value of a name wins.
 */
export function readFlags(words: readonly string[], draft: Draft): Flags {
  const flags = new Map<string, string>();
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    const [, name = '', value] = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === '') {
      const rest = words.slice(index + (word === '--' ? 1 : 0)).join(' ');
      if (rest !== '') draft.note('arguments', rest, 'not read: Noe stops at the first argument that is not a flag');
      break;
    }
    const next = words[index + 1];
    const takesNext = value === undefined && !BOOLEAN_FLAGS.includes(name) && next !== undefined;
    if (NAMES.has(name)) {
      const lacksValue = value === undefined && !takesNext && !BOOLEAN_FLAGS.includes(name);
      if (lacksValue) draft.refuse(`--${name}`, undefined, 'a value');
      else flags.set(name, value ?? (takesNext ? next : 'true'));
      if (takesNext) index++;
    } else {
      const isItsValue = takesNext && !next.startsWith('-');
      draft.note(`--${name}`, value ?? (isItsValue ? next : undefined), 'unknown');
      if (isItsValue) index++;
    }
  }
  return flags;
}

/** Returns the parts of a comma-separated list. */
export function items(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Returns the arguments of those containers of a workload (or pod) that have a flag of Noe. */
function argumentsIn(object: JsonObject): string[][] {
  const spec = objectAt(object, 'spec');
  const pod = isObject(spec.template) ? objectAt(spec.template, 'spec') : spec;
  return (listAt(pod, 'containers') ?? []).flatMap((container) => {
    const words = [container.command, container.args].flatMap((list) => (isTexts(list) ? list : []));
    const start = words.findIndex((word) => word.startsWith('-'));
    const own = start < 0 ? [] : words.slice(start);
    return own.some((word) => NAMES.has(word.replace(/^--?/, '').replace(/=.*$/s, ''))) ? [own] : [];
  });
}

/**
 * Splits text into words as a shell does: quotes, a backslash before a line's end or a character, comments of whole
 * lines.
 */
function splitWords(text: string): string[] {
  const withoutComments = text.replace(/^\s*#.*$/gm, '').replace(/\\\r?\n/g, ' ');
  const words = withoutComments.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/gs) ?? [];
  return words.map((word) =>
    word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/gs, (_, double?: string, single?: string, escaped?: string) =>
      double === undefined ? (single ?? escaped ?? '') : double.replace(/\\(["\\$`])/g, '$1'),
    ),
  );
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
}
