import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { STANDARD_INPUT } from '../config/config-file.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { codeOf, messageOf } from '../kit/errors.ts';
import { isObject, type JsonObject, stringAt } from '../kit/json.ts';

const MANIFEST = /\.(?:ya?ml|json)$/i;
/** How deep lists in lists are followed. */
const DEEPEST = 5;

/**
 * Reads the objects in files, in directories (their YAML and JSON files, not those of directories below, as kubectl does) and in
 * standard input (`-`). A file may hold several objects, and lists of objects.
 *
 * @param flag the flag that named them, for messages
 * @throws ConfigurationError that names each file that cannot be read
 */
export async function readObjects(
  names: readonly string[],
  readInput: () => Promise<string>,
  flag = '-f',
): Promise<JsonObject[]> {
  const input = names.includes(STANDARD_INPUT) ? await readInput() : '';
  const problems: string[] = [];
  const orProblem = <T>(name: string, read: (name: string) => T[]): T[] => {
    try {
      return read(name);
    } catch (error) {
      problems.push(`${flag} ${name}: ${problemOf(error)}`);
      return [];
    }
  };
  const objectsIn = (file: string) =>
    parseDocuments(file === STANDARD_INPUT ? input : readFileSync(file, 'utf8')).flatMap((value) =>
      flattened(value, 0),
    );
  // Standard input has only one end.
  const objects = [...new Set(names)].flatMap((name) =>
    orProblem(name, filesOf).flatMap((file) => orProblem(file, objectsIn)),
  );
  if (problems.length > 0) throw new ConfigurationError(problems);
  return objects;
}

/** Returns how a file is named in a message. */
export function inputName(file: string): string {
  return file === STANDARD_INPUT ? 'standard input' : file;
}

/** Whether the user asked for a list: several files, or a directory. */
export function mayHoldSeveral(names: readonly string[]): boolean {
  return names.length > 1 || names.some((name) => name !== STANDARD_INPUT && statSync(name).isDirectory());
}

function filesOf(name: string): string[] {
  if (name === STANDARD_INPUT || !statSync(name).isDirectory()) return [name];
  const found = readdirSync(name, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && MANIFEST.test(entry.name))
    .map((entry) => join(name, entry.name));
  if (found.length === 0) throw new Error('got a directory without YAML or JSON files, expected manifests');
  return found.sort();
}

/** Returns the values of a YAML or JSON text, one for each document. Throws what the parser says. */
function parseDocuments(text: string): unknown[] {
  return [...parseAllDocuments(text, { prettyErrors: false })].map((document): unknown => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS({ maxAliasCount: 100 });
  });
}

/** Returns the object, or the objects of a List. An empty document, as templates leave them, is nothing. */
function flattened(value: unknown, depth: number): JsonObject[] {
  if (!isObject(value)) return [];
  const isList = stringAt(value, 'kind')?.endsWith('List') === true && Array.isArray(value.items);
  if (!isList || depth === DEEPEST) return [value];
  return Array.isArray(value.items) ? value.items.flatMap((item) => flattened(item, depth + 1)) : [];
}

/** What the failures of a file say in words; others are the parser's, whose first line says enough. */
const IN_WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read: permission denied',
  ENOTDIR: 'does not exist: a part of its path is not a directory',
};

function problemOf(error: unknown): string {
  return IN_WORDS[codeOf(error)] ?? messageOf(error).split('\n', 1)[0] ?? '';
}
