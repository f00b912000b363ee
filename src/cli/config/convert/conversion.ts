import { stringify } from 'yaml';
import { allKeys, assign } from '../../../config/keys.ts';
import { ConfigurationError, shown } from '../../../config/shown-problems.ts';
import type { JsonObject } from '../../../kit/json.ts';
import { ARCHITECTURE_EXPECTED, didYouMean, readArchitecture } from '../../../kit/platform.ts';
import { printable } from '../../../kit/printable.ts';

/** A setting of the other system that has no counterpart, or that a person should look at. */
export type Note = {
  /** The key or flag in the other system; a few words for built-in behaviour. */
  readonly key: string;
  /** Its value in the other system; absent if there is none to show. */
  readonly value?: unknown;
  readonly note: string;
};

/**
 * The resulting configuration and the notes. The configuration has only the keys that differ from the default or follow
 * from a setting of the other system.
 */
export type Conversion = { readonly config: JsonObject; readonly notes: readonly Note[] };

/** A conversion in progress. */
export type Draft = {
  /** Sets a key of archaware to a value that is valid by itself. */
  set(path: string, value: unknown): void;
  /**
   * Sets a key to a value of the other system. If the schema refuses the value, the problem names the key of the other
   * system.
   */
  carry(path: string, value: unknown, key: string, given?: unknown): void;
  note(key: string, value: unknown, note: string): void;
  /** `logVerbosity: got "Loud", expected one of …`. */
  refuse(key: string, value: unknown, expected: string): void;
  /** Returns an architecture in the spelling of nodes; if it is not one, refuses it and returns undefined. */
  architecture(key: string, value: unknown): string | undefined;
  /** Returns the result. Throws {@link ConfigurationError} with everything that was refused. */
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
      if (key === undefined) throw new Error(`${path} is not a key`);
      if (key.schema.safeParse(value).success) assign(config, path, value);
      else refuse(name, given, key.expected);
    },
    architecture(key, value) {
      const name = typeof value === 'string' ? readArchitecture(value) : undefined;
      const meant = typeof value === 'string' ? didYouMean(value) : '';
      if (name === undefined) refuse(key, value, `${ARCHITECTURE_EXPECTED}${meant}`);
      else if (name !== value) note(key, value, `read as ${name}, the name that nodes report`);
      return name;
    },
    finish() {
      if (problems.length > 0) throw new ConfigurationError(problems);
      return { config, notes };
    },
  };
}

/** Returns a note as one line: `logVerbosity ("Trace"): the most detailed level here is debug`. Text from outside is escaped. */
export function noteLine({ key, value, note }: Note): string {
  return printable(`${key}${value === undefined ? '' : ` (${shown(value)})`}: ${note}`, 1_000);
}

/** Returns the configuration file of archaware, with the notes as comments at its end. */
export function renderConversion({ config, notes }: Conversion): string {
  const comments = notes.map((note) => `# - ${noteLine(note)}\n`).join('');
  if (comments === '') return stringify(config);
  return `${stringify(config)}\n# Settings without a counterpart, or that need your attention:\n${comments}`;
}
