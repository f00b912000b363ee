import * as z from 'zod';
import { allKeys, type Key, variableName } from '../../src/config/keys.ts';
import { appliesAtOnce } from '../../src/config/reload.ts';
import { isObject } from '../../src/kit/json.ts';
import { code, heading, join, type Page, table } from './markdown.ts';

const INTRODUCTION = `Each key is a path in the file of \`--config\` (YAML), a variable, and a flag: \`--\` and the key, as \`--taints.key\`. A flag wins over a
variable over the file over the default. In variables and flags lists are \`a,b\`; lists of objects and maps are YAML or JSON. Lists replace, they do not merge.
\`config print\` shows every value and where it comes from, \`config validate FILE\` checks a file, \`config schema\` prints its JSON Schema.

**Applies**: *at once* when the file changes, or *after a restart*, and then the log says so. A file with a mistake changes nothing
([Events](events.md): \`ConfigurationRejected\`). Variables and flags belong to the process, so they change only with a restart.`;

const POLICIES = `The fields of a policy. A policy matches if everything that it names matches. The first policy that matches decides alone; for what it does not set, the global key applies.`;

/** Every key, from the schema. */
export function configurationPage(): Page {
  const groups = new Map<string, Key[]>();
  for (const key of allKeys()) groups.set(groupOf(key.path), [...(groups.get(groupOf(key.path)) ?? []), key]);
  const sections = [...groups].map(([group, keys]) => {
    const fields = group === 'policies' ? [POLICIES, policyTable(keys)] : [];
    return [`## ${group}`, table(HEADER, keys.map(row)), ...fields].join('\n\n');
  });
  return { file: 'configuration.md', text: join(heading('Configuration'), INTRODUCTION, ...sections) };
}

const HEADER = ['key and variable', 'default', 'what it is', 'allowed', 'applies'];

function row(key: Key): string[] {
  return [
    `${code(key.path)}<br>${code(variableName(key.path))}`,
    code(shown(key.fallback)),
    key.description,
    key.expected,
    appliesAtOnce(key.path) ? 'at once' : 'after a restart',
  ];
}

function groupOf(path: string): string {
  const [first = path, second] = path.split('.');
  return second === undefined && first !== 'policies' ? 'Others' : first;
}

/** Returns a table of the innermost schemas with texts of their own, such as the fields of a policy. */
function policyTable(keys: readonly Key[]): string {
  let part: unknown = keys[0]?.schema;
  while (part instanceof z.ZodDefault) part = part.unwrap();
  const policy = part instanceof z.ZodArray ? part.element : undefined;
  if (!(policy instanceof z.ZodObject)) throw new Error('policies is not a list of objects any more');
  const rows = Object.entries(policy.shape).map(([name, field]) => {
    const meta: unknown = field instanceof z.ZodType ? field.meta() : undefined;
    const { description, expected } = isObject(meta) ? meta : {};
    return [code(name), String(description), String(expected)];
  });
  return table(['field', 'what it is', 'allowed'], rows);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value || '""' : JSON.stringify(value);
}
