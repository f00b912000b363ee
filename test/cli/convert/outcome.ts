import { type Conversion, renderConversion } from '../../../src/cli/config/convert/conversion.ts';
import { parseConfig } from '../../../src/config/config-file.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigurationError } from '../../../src/config/shown-problems.ts';

/** The result of converting a text: the configuration with its notes by key, or the problems. */
export type Outcome =
  | { readonly config: Conversion['config']; readonly notes: Readonly<Record<string, string>> }
  | { readonly problems: readonly string[] };

/** Converts a text, and loads the result as `config validate` does. Throws if that is refused. */
export function convertAndLoad(convert: (file: string, text: string) => Conversion, text: string): Outcome {
  let conversion: Conversion;
  try {
    conversion = convert('theirs', text);
  } catch (error) {
    if (error instanceof ConfigurationError) return { problems: error.problems };
    throw error;
  }
  loadConfig({ file: parseConfig('ours', renderConversion(conversion)), environment: {}, flags: {} });
  return {
    config: conversion.config,
    notes: Object.fromEntries(conversion.notes.map(({ key, note }) => [key, note])),
  };
}

/** Returns the configuration of an outcome. Throws the problems if it has none. */
export function configOf(outcome: Outcome): Conversion['config'] {
  if ('problems' in outcome) throw new Error(outcome.problems.join('\n'));
  return outcome.config;
}

/** Returns the notes of an outcome by key. Throws the problems if it has none. */
export function notesOf(outcome: Outcome): Readonly<Record<string, string>> {
  if ('problems' in outcome) throw new Error(outcome.problems.join('\n'));
  return outcome.notes;
}

/** Returns the problems of an outcome; none if it has a configuration. */
export function problemsOf(outcome: Outcome): readonly string[] {
  return 'problems' in outcome ? outcome.problems : [];
}
