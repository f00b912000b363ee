import { stringify } from 'yaml';
import type { JsonObject } from '../../kit/json.ts';
import { ARCHITECTURE_EXPECTED, didYouMean, readArchitecture } from '../../kit/platform.ts';
import { printable } from '../../kit/printable.ts';
import { allKeys, assign } from '../keys.ts';
import { ConfigurationError, shown } from '../problems.ts';

/** What of another system's settings has no counterpart, or wants a look. */
export type Note = {
  /** The key or flag there; a few words for what is built in there. */
  readonly key: string;
  /** Its value there; absent where there is none to tell. */
  readonly value?: unknown;
  readonly note: string;
};

/** Our configuration, only the keys that differ from the default or follow from a setting there, and what is left to say. */
export type Conversion = { readonly config: JsonObject; readonly notes: readonly Note[] };

/** A conversion that is being made. */
export type Draft = {
  /** Sets a key of ours to a value that is good by itself. */
  set(path: string, value: unknown): void;
  /** The same for a value from there: what the schema does not allow is refused under the name that it has there. */
  carry(path: string, value: unknown, key: string, given?: unknown): void;
  note(key: string, value: unknown, note: string): void;
  /** `logVerbosity: got "Loud", expected one of …`. */
  refuse(key: string, value: unknown, expected: string): void;
  /** An architecture in the spelling of nodes; undefined, and refused, where it is none. */
  architecture(key: string, value: unknown): string | undefined;
  /** Throws {@link ConfigurationError} with everything that was refused. */
  finish(): Conversion;
};

/** @param file named at the end of every problem */
export function createDraft(file: string): Draft {
  const keys = new Map(allKeys().map((key) => [key.path, key]));
  const config: Record<string, unknown> = {};
  const notes: Note[] = [];
  const problems: string[] = [];

  const refuse: Draft['refuse'] = (key, value, expected) => {
    const got = value === undefined ? 'nothing' : shown(value);
    problems.push(`${printable(key, 200)}: got ${got}, expected ${expected} (${file})`);
  };
  const note: Draft['note'] = (key, value, text) => {
    notes.push({ key, ...(value === undefined ? {} : { value }), note: text });
  };
  return {
    refuse,
    note,
    set: (path, value) => assign(config, path, value),
    carry(path, value, name, given = value) {
      const key = keys.get(path);
      if (key === undefined) throw new Error(`${path} is no key`);
      if (key.schema.safeParse(value).success) assign(config, path, value);
      else refuse(name, given, key.expected);
    },
    architecture(key, value) {
      const name = typeof value === 'string' ? readArchitecture(value) : undefined;
      const meant = typeof value === 'string' ? didYouMean(value) : '';
      if (name === undefined) refuse(key, value, `${ARCHITECTURE_EXPECTED}${meant}`);
      else if (name !== value) note(key, value, `taken for ${name}, as nodes report it`);
      return name;
    },
    finish() {
      if (problems.length > 0) throw new ConfigurationError(problems);
      return { config, notes };
    },
  };
}

/** A note in one line: `logVerbosity ("Trace"): debug is the finest here`. Text from outside is escaped. */
export function noteLine({ key, value, note }: Note): string {
  return printable(`${key}${value === undefined ? '' : ` (${shown(value)})`}: ${note}`, 1_000);
}

/** Our configuration file, with the notes as comments at its end. */
export function renderConversion({ config, notes }: Conversion): string {
  const comments = notes.map((note) => `# - ${noteLine(note)}\n`).join('');
  if (comments === '') return stringify(config);
  return `${stringify(config)}\n# What has no counterpart, or wants a look:\n${comments}`;
}
