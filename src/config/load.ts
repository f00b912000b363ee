import { parse as parseYaml } from 'yaml';
import { isObject } from '../kit/json.ts';
import { editDistance, nearest } from '../kit/nearest.ts';
import { usesAffinity } from '../placement/placing.ts';
import type { ConfigFile } from './config-file.ts';
import { crossCheck } from './cross-check.ts';
import { allKeys, assign, type ConfigKey, expectedAt, namesAt, valueAt, variableName } from './keys.ts';
import { type Config, schema } from './schema.ts';
import { ConfigurationError, MOST_PROBLEMS, shown, withoutLogin } from './shown-problems.ts';

/** Where a value comes from: a flag, a variable, `file:line`, or `default`. */
export type KeySource = string;

/** A configuration and the source of each key. */
export type Loaded = { readonly config: Config; readonly sources: ReadonlyMap<string, KeySource> };

export type Layers = {
  readonly file?: ConfigFile | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Texts by key, as given after `--key`. */
  readonly flags: Readonly<Record<string, string>>;
};

type Given = {
  readonly value: unknown;
  readonly source: KeySource;
  readonly lineOf?: (path: (string | number)[]) => KeySource;
};

/**
 * Combines the layers: a flag wins over a variable, a variable over the file, the file over the default. Throws {@link
 * ConfigurationError} with every problem; each names the key, the value, what is allowed and where the value was given.
 */
export function loadConfig({ file, environment, flags }: Layers): Loaded {
  const keys = allKeys();
  const problems: string[] = [];
  const given = new Map<string, Given>();
  if (file) fromFile(file, keys, given, problems);
  fromEnvironment(environment, keys, given, problems);
  for (const [path, text] of Object.entries(flags)) {
    const key = keys.find((candidate) => candidate.path === path);
    // A flag without a value means true, for example `--taints.manage`; an empty variable is ignored.
    const value = key?.form === 'boolean' && text === '' ? 'true' : text;
    if (key) fromText(key, value, `--${path}`, given, problems);
  }

  const config: Record<string, unknown> = {};
  const sources = new Map<string, KeySource>();
  for (const key of keys) {
    const entry = given.get(key.path);
    sources.set(key.path, entry?.source ?? 'default');
    const value = entry === undefined ? key.fallback : check(key, entry, problems);
    assign(config, key.path, value);
  }
  if (problems.length > 0) throw new ConfigurationError(byLine(problems));
  followMode(config, given, sources);
  const parsed = schema.parse(config);
  const mismatches = crossCheck(parsed, (key, path = []) => {
    const entry = given.get(key);
    return entry?.lineOf?.([...path]) ?? entry?.source ?? 'default';
  });
  if (mismatches.length > 0) throw new ConfigurationError(mismatches);
  return { config: parsed, sources };
}

/** Sorts problems by their lines in the file; those without a line come last, in their order. An unknown key explains what follows. */
function byLine(problems: readonly string[]): string[] {
  const lineOf = (problem: string) => Number(/:(\d+)\)$/.exec(problem)?.[1] ?? Number.POSITIVE_INFINITY);
  const isKnown = (problem: string) => Number(!problem.includes('unknown key'));
  return problems.toSorted((one, other) => lineOf(one) - lineOf(other) || isKnown(one) - isKnown(other));
}

/** If nobody sets whether the webhook is served, it follows from the mode: two modes need it. */
function followMode(
  config: Record<string, unknown>,
  given: ReadonlyMap<string, Given>,
  sources: Map<string, KeySource>,
) {
  const isSaid = (given.get('webhook.enabled')?.value ?? undefined) !== undefined;
  if (isSaid || !usesAffinity({ mode: valueAt(config, 'placement.mode') })) return;
  assign(config, 'webhook.enabled', true);
  sources.set('webhook.enabled', `placement.mode, ${sources.get('placement.mode')}`);
}

/** Returns the line for an unknown key, or for one that an earlier version had. */
export function unknownKey(path: string, keys: readonly ConfigKey[]): string {
  const removed = removedKey(path);
  if (removed !== undefined) return removed;
  const near = nearest(path, [...new Set(keys.flatMap((key) => [key.path, ...groupsOf(key.path)]))]);
  return `${path}: unknown key${near === undefined ? '' : `; did you mean ${near}?`}`;
}

/** Returns the groups that contain a key: `images.cache` and `images` for `images.cache.tagTtl`. */
function groupsOf(path: string): string[] {
  const parts = path.split('.');
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('.'));
}

/** Returns the line for an unknown flag, or for that of a key that an earlier version had. */
export function unknownFlag(name: string, known: readonly string[]): string {
  const typed = name.length === 1 ? `-${name}` : `--${name}`;
  const removed = removedKey(typed);
  if (removed !== undefined) return removed;
  const near = nearest(name, known);
  return `${typed}: unknown flag${near === undefined ? '' : `; did you mean --${near}?`}`;
}

function fromFile(file: ConfigFile, keys: readonly ConfigKey[], given: Map<string, Given>, problems: string[]): void {
  const where = (path: (string | number)[]) => `${file.name}:${file.lineOf(path)}`;
  // A group with removed keys is one too, so that they are named one by one.
  const paths = [...REMOVED.keys(), ...keys.map((key) => key.path)];
  const isGroup = (path: string) => paths.some((each) => each.startsWith(`${path}.`));
  // Problems after the last printed one are only counted: searching thousands of names for the nearest one takes seconds.
  const add = (line: () => string) => problems.push(problems.length < MOST_PROBLEMS ? line() : '');
  const walk = (value: unknown, path: string[]): void => {
    const name = path.join('.');
    if (keys.some((key) => key.path === name)) {
      given.set(name, { value, source: where(path), lineOf: (rest) => where([...path, ...rest]) });
    } else if (name !== '' && !isGroup(name)) {
      add(() => `${unknownKey(name, keys)} (${where(path)})`);
    } else if (isObject(value)) {
      for (const [key, child] of Object.entries(value)) {
        if (!key.includes('.')) walk(child, [...path, key]);
        else add(() => `${key}: unknown key; in a file the parts of a name are nested maps (${where([...path, key])})`);
      }
    } else if (value !== null) {
      add(() => `${name || file.name}: got ${shown(value)}, expected a map of keys (${where(path)})`);
    }
  };
  walk(file.value, []);
}

function fromEnvironment(
  environment: Layers['environment'],
  keys: readonly ConfigKey[],
  given: Map<string, Given>,
  problems: string[],
): void {
  const names = new Map(keys.map((key) => [variableName(key.path), key]));
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('ARCHAWARE_') || text === undefined) continue;
    const key = names.get(name);
    if (key) fromText(key, text, name, given, problems);
    else {
      const problem = removedKey(name) ?? unknownVariable(name, [...names.keys()]);
      if (problem !== undefined) problems.push(problem);
    }
  }
}

/**
 * Returns the line for an unknown variable; undefined if it may be of somebody else. Kubernetes sets variables for every Service of the
 * namespace (`ARCHAWARE_METRICS_PORT`). So a variable counts as one of archaware's only if it has the separator `__` or is nearly a
 * known name.
 */
function unknownVariable(name: string, known: readonly string[]): string | undefined {
  if (!name.includes('__') && known.every((candidate) => editDistance(name, candidate) > 2)) return undefined;
  const near = nearest(name, known);
  return `${name}: unknown variable${near === undefined ? '' : `; did you mean ${near}?`}`;
}

function fromText(
  key: ConfigKey,
  text: string,
  source: KeySource,
  given: Map<string, Given>,
  problems: string[],
): void {
  const value = readText(key, text);
  if (value === undefined) problems.push(`${key.path}: got ${shown(text)}, expected ${key.expected} (${source})`);
  else given.set(key.path, { value, source });
}

/** Parses the text of a flag or a variable; undefined if it does not fit. */
function readText({ form }: ConfigKey, text: string): unknown {
  switch (form) {
    case 'text':
      return text;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'number':
      return /^-?[0-9]+$/.test(text.trim()) ? Number(text) : undefined;
    case 'list':
      return text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '');
    case 'yaml':
      try {
        return parseYaml(text) ?? undefined;
      } catch {
        return undefined;
      }
    default:
      return form satisfies never;
  }
}

function check(key: ConfigKey, { value, source, lineOf }: Given, problems: string[]): unknown {
  const parsed = key.schema.safeParse(value === null ? undefined : value);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues.slice(0, 5)) {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
    const line = lineOf?.(path) ?? source;
    const name = nameAt(key, path);
    const got = at(value, path);
    if (issue.code === 'unrecognized_keys') {
      const unknown = issue.keys.map(withoutLogin).join(', ');
      const near = issue.keys.flatMap((each) => nearest(each, namesAt(key, path)) ?? []);
      const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
      problems.push(`${name}: unknown key ${unknown}; expected ${key.expected}${hint} (${line})`);
    } else if (issue.code === 'invalid_key')
      problems.push(`${name}: ${issue.issues[0]?.message ?? 'unknown key'} (${line})`);
    else if (issue.message.startsWith('got ')) problems.push(`${name}: ${issue.message} (${line})`);
    else problems.push(`${name}: got ${shown(got)}, expected ${expectedAt(key, path)} (${line})`);
  }
  return key.fallback;
}

/** `policies[1].fallback`. */
function nameAt(key: ConfigKey, path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => text + (typeof part === 'number' ? `[${part}]` : `.${withoutLogin(part)}`),
    key.path,
  );
}

function at(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((current, part) => {
    if (Array.isArray(current)) return current[Number(part)];
    return isObject(current) ? current[String(part)] : undefined;
  }, value);
}

/**
 * Keys that an earlier version had, each with what to do now, such as `remove it: …` or `use taints.key: …`. It goes on after
 * `taints.name: this key was removed; `.
 */
export const REMOVED: ReadonlyMap<string, string> = new Map<string, string>([
  // Sorted by path.
  [
    'images.cache.file',
    'remove it: what is known of images is kept in memory only, and after a restart one request is sent for each image that is needed',
  ],
  [
    'images.lies',
    'remove it: archaware no longer learns from a crash; state the architectures of such an image in images.overrides',
  ],
]);

/** Returns the line for a removed key, in the form in which it was given: as a path, a flag or a variable. Undefined for any other. */
function removedKey(given: string): string | undefined {
  for (const [path, advice] of REMOVED) {
    if ([path, `--${path}`, variableName(path)].includes(given)) return `${given}: this key was removed; ${advice}`;
  }
  return undefined;
}
