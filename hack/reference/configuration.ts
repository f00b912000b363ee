import * as z from 'zod';
import { allKeys, type ConfigKey, variableName } from '../../src/config/keys.ts';
import { appliesAtOnce } from '../../src/config/reload.ts';
import { isObject } from '../../src/kit/json.ts';
import { code, type Part, table } from './markdown.ts';

/** Every key, from the schema. */
export function configurationPart(): Part {
  return { page: 'configuration.md', name: 'keys', text: table(HEADER, allKeys().map(row)) };
}

const HEADER = ['key and variable', 'default', 'what it is', 'allowed', 'restart'];

function row(key: ConfigKey): string[] {
  return [
    `${code(key.path)}<br>${code(variableName(key.path))}`,
    code(shown(key.fallback)),
    key.description,
    withoutExample(key.expected),
    appliesAtOnce(key.path) ? '' : 'yes',
  ];
}

/** The fields of a policy that have no global key of the same meaning. */
export function policiesPart(): Part {
  let part: unknown = allKeys().find(({ path }) => path === 'policies')?.schema;
  while (part instanceof z.ZodDefault) part = part.unwrap();
  const policy = part instanceof z.ZodArray ? part.element : undefined;
  if (!(policy instanceof z.ZodObject)) throw new Error('policies is not a list of objects any more');
  const rows = Object.entries(policy.shape).flatMap(([name, field]) => {
    const meta: unknown = field instanceof z.ZodType ? field.meta() : undefined;
    const { description, expected } = isObject(meta) ? meta : {};
    const isGlobal = allKeys().some(({ path, description: same }) => path.endsWith(`.${name}`) && same === description);
    return isGlobal ? [] : [[code(name), String(description), withoutExample(String(expected))]];
  });
  return { page: 'configuration.md', name: 'policies', text: table(['field', 'what it is', 'allowed'], rows) };
}

/** The page gives an example of a duration and of a label selector once. */
function withoutExample(expected: string): string {
  return expected.replace(/^(a duration .*?|a label selector), such as .*$/, '$1');
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value || '""' : JSON.stringify(value);
}
