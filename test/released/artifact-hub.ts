/** The format of the annotations that Artifact Hub reads from Chart.yaml: https://artifacthub.io/docs/topics/annotations/helm/ */
import { parse } from 'yaml';
import { parseReference } from '../../src/oci/reference.ts';

const PREFIX = 'artifacthub.io/';
const CATEGORIES = [
  'ai-machine-learning',
  'database',
  'integration-delivery',
  'monitoring-logging',
  'networking',
  'security',
  'skip-prediction',
  'storage',
  'streaming-messaging',
];
const KINDS = ['added', 'changed', 'deprecated', 'removed', 'fixed', 'security'];

/** Returns what is wrong with the annotations of a chart; it knows those that this chart has. */
export function artifactHubProblems(annotations: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(annotations)
    .filter(([name]) => name.startsWith(PREFIX))
    .flatMap(([name, value]) => {
      // Helm refuses an annotation that is not a string.
      const found = typeof value === 'string' ? problemsOf(name.slice(PREFIX.length), value) : ['not a text'];
      return found.map((problem) => `${name}: ${problem}`);
    });
}

function problemsOf(name: string, value: string): readonly string[] {
  switch (name) {
    case 'category':
      return CATEGORIES.includes(value) ? [] : ['not one of its categories'];
    case 'license':
      return /^[\w.+-]+$/.test(value) ? [] : ['not an identifier of SPDX'];
    case 'prerelease':
    case 'containsSecurityUpdates':
      return value === 'true' || value === 'false' ? [] : ['neither true nor false'];
    case 'changes':
      return listProblems(value, ['description'], ({ kind }) =>
        KINDS.includes(String(kind)) ? [] : [`the kind ${kind}`],
      );
    case 'links':
      return listProblems(value, ['name', 'url'], ({ url }) =>
        /^https?:/.test(String(url)) ? [] : [`${url} is not a URL`],
      );
    case 'images':
      return listProblems(value, ['image'], ({ image, platforms }) => [
        ...(isReference(String(image)) ? [] : [`${image} is not a reference`]),
        ...(Array.isArray(platforms) && platforms.every((one) => /^\w+\/\w+$/.test(one)) ? [] : ['platforms']),
      ]);
    default:
      return ['unknown'];
  }
}

function isReference(text: string): boolean {
  try {
    parseReference(text);
    return true;
  } catch {
    return false;
  }
}

/** The value is YAML: a list of objects with these fields. */
function listProblems(
  value: string,
  fields: readonly string[],
  more: (entry: Readonly<Record<string, unknown>>) => readonly string[],
): readonly string[] {
  const list: unknown = parse(value);
  if (!Array.isArray(list)) return ['not a list'];
  return list.flatMap((entry) => {
    const missing = fields.filter((field) => typeof entry[field] !== 'string' || entry[field] === '');
    return missing.length > 0 ? missing.map((field) => `an entry without ${field}`) : more(entry);
  });
}
