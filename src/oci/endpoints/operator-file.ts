import { readFile, stat } from 'node:fs/promises';
import { parse, TomlError } from 'smol-toml';
import { codeOf, messageOf } from '../../kit/errors.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';

const MAX_FILE = 1024 * 1024;

/** @throws Error that {@link reason} explains */
export async function readText(file: string): Promise<string> {
  const found = await stat(file);
  // Reading a pipe would never end.
  if (!found.isFile()) throw new Error('is not a file');
  if (found.size > MAX_FILE) throw new Error(`is larger than ${MAX_FILE} bytes`);
  return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
}

/** Returns why a file cannot be used. */
export function reason(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not UTF-8';
  if (code !== '') return `cannot be read (${code})`;
  return messageOf(error);
}

/** Adds to an error where in a file it is. */
export function explained<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${at}: ${messageOf(error)}`);
  }
}

/** A file, or a folder of certificates, that cannot be used or of which a part is ignored. */
export type FileProblem = { readonly file: string; readonly problem: string };

/**
 * Creates what keeps the content of files, or of folders of certificates; one that cannot be used keeps its previous content. Nothing
 * is read before the first reload.
 *
 * @param place what cannot be read if `list` throws; everything keeps its content then. Empty: there are no files.
 */
export function createFiles<T>(
  place: string,
  list: () => readonly string[] | Promise<readonly string[]>,
  read: (file: string) => Promise<T>,
) {
  let values: ReadonlyMap<string, T> = new Map();
  return {
    /** The contents, in the order of the list. */
    values: () => values,
    async reload(): Promise<FileProblem[]> {
      const problems: FileProblem[] = [];
      if (place === '') return problems;
      const attempt = async <R>(file: string, work: () => R | Promise<R>): Promise<R | undefined> => {
        try {
          return await work();
        } catch (error) {
          problems.push({ file, problem: reason(error) });
          return undefined;
        }
      };
      const files = await attempt(place, list);
      if (files === undefined) return problems;
      const next = new Map<string, T>();
      for (const file of files) {
        const value = (await attempt(file, () => read(file))) ?? values.get(file);
        if (value !== undefined) next.set(file, value);
      }
      values = next;
      return problems;
    },
  };
}

/** Returns what reports problems, each once until it is gone. */
export function reportOnce(report: (problem: FileProblem) => void): (problems: readonly FileProblem[]) => void {
  let before = new Set<string>();
  return (problems) => {
    const now = new Map(problems.map((each) => [`${each.file} ${each.problem}`, each]));
    for (const [key, problem] of now) if (!before.has(key)) report(problem);
    before = new Set(now.keys());
  };
}

/** Returns the function for a reload: one runs after the other, so that the last one to start decides. */
export function oneAfterTheOther<T>(load: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  return () => {
    const result = running.then(load);
    running = result.catch(() => undefined);
    return result;
  };
}

/** A table with its place in the file, for messages. */
export type Table = { readonly at: string; readonly fields: ReadonlyMap<string, unknown> };

/** @throws Error naming the line and the problem, without the text of the file */
export function parseToml(text: string): JsonObject {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // After its first line, the message quotes the file, which may hold credentials in a header.
    const [problem = ''] = error.message.replace(/^Invalid TOML document: /, '').split('\n');
    throw new Error(`line ${error.line}, column ${error.column}: ${problem}`);
  }
}

/** Returns the fields by their names in lower case, as Go's decoders of the runtimes read them. */
export function readTable(table: JsonObject, at: string, known: readonly string[], warnings: string[]): Table {
  const fields = new Map<string, unknown>();
  for (const [name, value] of Object.entries(table)) {
    const lower = name.toLowerCase();
    if (known.includes(lower)) fields.set(lower, value);
    else
      warnings.push(
        `${at}${printableAscii(name, 60)}: unknown field, ignored (as by the runtime); known fields: ${known.join(', ')}`,
      );
  }
  return { at, fields };
}

export function readFlag({ at, fields }: Table, field: string): boolean | undefined {
  const value = fields.get(field);
  if (value !== undefined && typeof value !== 'boolean') throw wrong(`${at}${field}`, value, 'true or false');
  return value;
}

export function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** Dates of TOML are objects as well. */
export function isTable(value: unknown): value is JsonObject {
  return isObject(value) && !(value instanceof Date);
}

export function wrong(at: string, value: unknown, expected: string): Error {
  const kind = Array.isArray(value)
    ? 'a list'
    : value instanceof Date
      ? 'a date'
      : isObject(value)
        ? 'a table'
        : undefined;
  return new Error(
    `${at}: expected ${expected}, got ${kind ?? (value === '' ? 'an empty text' : `a ${typeof value}`)}`,
  );
}
