import { parse, TomlError } from 'smol-toml';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';

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
