import { readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigurationError } from './problems.ts';

/** A configuration file, read: its value, and where each key stands. */
export type ConfigFile = {
  readonly name: string;
  readonly value: unknown;
  lineOf(path: readonly (string | number)[]): number;
};

/** Reads a YAML (or JSON) file. Throws {@link ConfigurationError} with the line where it is no YAML. */
export function readConfigFile(name: string): ConfigFile {
  let text: string;
  try {
    text = readFileSync(name, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ConfigurationError([`configuration file ${name} cannot be read (${code})`]);
  }
  return parseConfig(name, text);
}

/** The same from a text. */
export function parseConfig(name: string, text: string): ConfigFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new ConfigurationError(
      document.errors.map(
        ({ message, pos }) => `${message.split('\n')[0]} (${name}:${lineCounter.linePos(pos[0]).line})`,
      ),
    );
  }
  return {
    name,
    value: plainValue(name, document),
    lineOf: (path) => lineCounter.linePos(offsetOf(document, path)).line,
  };
}

/** The document as a plain value. Throws {@link ConfigurationError} for an alias without its anchor, or far too many. */
function plainValue(name: string, document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (error) {
    throw new ConfigurationError([`${error instanceof Error ? error.message : String(error)} (${name})`]);
  }
}

/** Offset of the key at a path, or of the nearest thing above it. */
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
