import * as z from 'zod';
import { isObject } from '../kit/json.ts';
import { schema } from './schema.ts';

/** One key of the configuration, with its names as a flag, as a variable and as a path in the file. */
export type ConfigKey = {
  /** `taints.nodeSelector`. */
  readonly path: string;
  readonly schema: z.ZodType;
  /** How the text of a flag or a variable is parsed. */
  readonly form: 'text' | 'boolean' | 'number' | 'list' | 'yaml';
  readonly fallback: unknown;
  readonly description: string;
  readonly expected: string;
  /** The words that are allowed, also as the parts of a list; empty if there are others. */
  readonly choices: readonly string[];
};

let keys: readonly ConfigKey[] | undefined;

/** Returns every key, in the order of the schema. They are read from it once. */
export function allKeys(): readonly ConfigKey[] {
  keys ??= keysOf(schema, '');
  return keys;
}

function keysOf(object: z.ZodObject, prefix: string): ConfigKey[] {
  return Object.entries(object.shape).flatMap(([name, part]) => {
    const path = `${prefix}${name}`;
    if (part instanceof z.ZodObject) return keysOf(part, `${path}.`);
    if (!(part instanceof z.ZodDefault)) throw new Error(`${path} has no default`);
    const meta: unknown = part.meta();
    const { description, expected } = isObject(meta) ? meta : {};
    return {
      path,
      schema: part,
      form: formOf(part.unwrap()),
      fallback: part.parse(undefined),
      description: String(description),
      expected: String(expected),
      choices: choicesOf(part.unwrap()),
    };
  });
}

/** Returns what is allowed at a path within a key, such as a field of a policy: the text of the innermost schema that has one. */
export function expectedAt(key: ConfigKey, path: readonly (string | number)[]): string {
  let part: unknown = key.schema;
  let expected = key.expected;
  for (const name of path) {
    part = schemaIn(part, name);
    const meta: unknown = part instanceof z.ZodType ? part.meta() : undefined;
    if (isObject(meta) && typeof meta.expected === 'string') expected = meta.expected;
  }
  return expected;
}

/** Returns the names that are known at a path within a key, such as the fields of a policy; none for anything but an object. */
export function namesAt(key: ConfigKey, path: readonly (string | number)[]): string[] {
  const part = path.reduce<unknown>(schemaIn, key.schema);
  return part instanceof z.ZodObject ? Object.keys(part.shape) : [];
}

function schemaIn(part: unknown, name: string | number): unknown {
  if (part instanceof z.ZodDefault || part instanceof z.ZodOptional) return schemaIn(part.unwrap(), name);
  if (part instanceof z.ZodArray) return part.element;
  if (part instanceof z.ZodRecord) return part.valueType;
  return part instanceof z.ZodObject ? part.shape[name] : undefined;
}

function formOf(schema: unknown): ConfigKey['form'] {
  if (schema instanceof z.ZodBoolean) return 'boolean';
  if (schema instanceof z.ZodNumber) return 'number';
  if (schema instanceof z.ZodArray) return schema.element instanceof z.ZodObject ? 'yaml' : 'list';
  return schema instanceof z.ZodRecord ? 'yaml' : 'text';
}

function choicesOf(schema: unknown): readonly string[] {
  if (schema instanceof z.ZodBoolean) return ['true', 'false'];
  if (schema instanceof z.ZodArray) return choicesOf(schema.element);
  return schema instanceof z.ZodEnum ? schema.options.map(String) : [];
}

/** Whether a key is a group or is below it. */
export function isWithin(group: string, path: string): boolean {
  return path === group || path.startsWith(`${group}.`);
}

/** Returns the value of a key in a configuration. */
export function valueAt(config: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((group, name) => (isObject(group) ? group[name] : undefined), config);
}

/** Sets the value of a key, and creates the groups that it is in. */
export function assign(target: Record<string, unknown>, path: string, value: unknown): void {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    target[head] = value;
    return;
  }
  const child = target[head];
  const group: Record<string, unknown> = isObject(child) ? { ...child } : {};
  target[head] = group;
  assign(group, rest.join('.'), value);
}

/** Returns the variable's name of a key: `ARCHAWARE_TAINTS__NODE_SELECTOR` for `taints.nodeSelector`. */
export function variableName(path: string): string {
  const segments = path.split('.').map((part) => part.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase());
  return `ARCHAWARE_${segments.join('__')}`;
}
