import { readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, LineCounter, parseAllDocuments } from 'yaml';
import { codeOf, messageOf } from '../kit/errors.ts';
import { isObject, objectAt, stringAt } from '../kit/json.ts';
import { ConfigurationError, shown } from './shown-problems.ts';

/** A parsed configuration file: its value, and the place of each key. */
export type ConfigFile = {
  readonly name: string;
  readonly value: unknown;
  lineOf(path: readonly (string | number)[]): number;
  /** Whether there is nothing in it at all, not even a comment. */
  readonly isEmpty?: true;
  /** What part of the file is the configuration, if it is not the whole file. */
  readonly note?: string;
};

/** The name of standard input on a command line. */
export const STANDARD_INPUT = '-';
/** The entry of the ConfigMap in which the manifests and the chart put the configuration. */
const CONFIG_MAP_KEY = 'config.yaml';

/**
 * Reads a YAML (or JSON) file. It may hold a configuration, a ConfigMap with one, alone or among other objects, or the
 * values of the Helm chart. Throws {@link ConfigurationError} with the line if it is invalid.
 */
export function readConfigFile(name: string): ConfigFile {
  let text: string;
  try {
    text = readFileSync(name, 'utf8');
  } catch (error) {
    throw new ConfigurationError([`configuration file ${name} cannot be read (${codeOf(error) || messageOf(error)})`]);
  }
  return parseConfig(name, text);
}

/** Reads a file as {@link readConfigFile} does, or waits for the end of standard input (`-`). */
export async function readConfigOrInput(name: string, readInput: () => Promise<string>): Promise<ConfigFile> {
  return name === STANDARD_INPUT ? parseConfig('standard input', await readInput()) : readConfigFile(name);
}

/** Parses a configuration from a text; see {@link readConfigFile}. */
export function parseConfig(name: string, text: string): ConfigFile {
  const lines = new LineCounter();
  const documents = [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })];
  const errors = documents.flatMap((document) => document.errors);
  if (errors.length > 0) {
    throw new ConfigurationError(
      errors.map(({ code, message, pos }) => {
        const what =
          code === 'DUPLICATE_KEY' ? `key ${shown(keyAt(text, pos[0]))} is given twice` : message.split('\n')[0];
        return `${what} (${name}:${lines.linePos(pos[0]).line})`;
      }),
    );
  }
  const read = documents.filter(isFilled).map((document) => ({ document, value: plainValue(name, document) }));
  const maps = read.filter(({ value }) => configIn(value) !== undefined);
  const [only] = maps.length === 1 || read.length > 1 ? maps : read;
  if (only === undefined || maps.length > 1) {
    const isEmpty = /^(?:---|\.\.\.|\s)*$/.test(text) ? { isEmpty: true as const } : {};
    if (read.length === 0) return { name, value: {}, lineOf: () => 1, ...isEmpty };
    const got = `${read.length} documents, ${maps.length} of them ConfigMaps with ${CONFIG_MAP_KEY}`;
    throw new ConfigurationError([`${name}: got ${got}, expected one configuration`]);
  }
  const { document, value } = only;
  const lineOf: ConfigFile['lineOf'] = (path) => lines.linePos(offsetOf(document, path)).line;
  const config = configIn(value);
  if (config !== undefined) return inConfigMap(name, document, config, lines);
  refuseOtherObjects(name, value);
  if (isObject(value) && Object.hasOwn(value, 'config') && (isObject(value.config) || value.config === null)) {
    const note = 'this is a Helm values file: only its `config:` is checked';
    return { name, value: value.config ?? {}, lineOf: (path) => lineOf(['config', ...path]), note };
  }
  return { name, value, lineOf };
}

function keyAt(text: string, offset: number): string {
  return /^["']?([^"':\s]*)/.exec(text.slice(offset, offset + 100))?.[1] ?? '';
}

/** Whether there is anything between two `---`. */
function isFilled({ contents }: Document.Parsed): boolean {
  return contents !== null && !(isScalar(contents) && contents.value === null);
}

function configIn(value: unknown): string | undefined {
  if (!isObject(value) || value.kind !== 'ConfigMap') return undefined;
  return stringAt(objectAt(value, 'data'), CONFIG_MAP_KEY);
}

function inConfigMap(name: string, document: Document.Parsed, text: string, lines: LineCounter): ConfigFile {
  const scalar = document.getIn(['data', CONFIG_MAP_KEY], true);
  const literal = isScalar(scalar) && scalar.type === 'BLOCK_LITERAL' ? scalar.range : undefined;
  // The text of a literal block begins on the line after its `|`, so its lines can be counted on from there. In any
  // other style the lines do not correspond.
  const before = literal ? lines.linePos(literal[0]).line : 0;
  const inner = parseConfig(literal ? name : `${name}, ${CONFIG_MAP_KEY}`, '\n'.repeat(before) + text);
  return { ...inner, note: `this is a ConfigMap: only its ${CONFIG_MAP_KEY} is checked` };
}

/** A value with `kind` is a Kubernetes object, because no key of the configuration has that name. */
function refuseOtherObjects(name: string, value: unknown): void {
  if (!isObject(value) || typeof value.kind !== 'string' || typeof value.apiVersion !== 'string') return;
  const keys = Object.keys(objectAt(value, 'data')).join(', ');
  const what = value.kind === 'ConfigMap' ? `a ConfigMap without ${CONFIG_MAP_KEY} (data: ${keys || 'none'})` : '';
  throw new ConfigurationError([
    `${name}: got ${what || `an object of kind ${shown(value.kind)}`}, expected a configuration, a ConfigMap that contains one as ` +
      `${CONFIG_MAP_KEY}, or values of the Helm chart`,
  ]);
}

/** Returns the document as a plain value. Throws {@link ConfigurationError} for an alias without an anchor, or far too many aliases. */
function plainValue(name: string, document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (error) {
    throw new ConfigurationError([`${messageOf(error)} (${name})`]);
  }
}

/** Returns the offset of the key at a path, or of the nearest key above it. */
function offsetOf(document: Document.Parsed, path: readonly (string | number)[]): number {
  for (let depth = path.length; depth > 0; depth--) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const name = path[depth - 1];
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(name));
      if (pair !== undefined && isScalar(pair.key) && pair.key.range) return pair.key.range[0];
    }
    const node = document.getIn(path.slice(0, depth), true);
    if (typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)) {
      return Number(node.range[0]);
    }
  }
  return 0;
}
