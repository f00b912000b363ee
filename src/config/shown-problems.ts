/** The most problems that are named; a file of another kind may have thousands. */
export const MOST_PROBLEMS = 20;

/**
 * The problems of a configuration, one on each line; the last line counts those that are not named. Nothing of the
 * configuration was applied.
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const more = problems.length - MOST_PROBLEMS;
    const named = more > 0 ? [...problems.slice(0, MOST_PROBLEMS), `and ${more} more`] : problems;
    super(named.join('\n'));
    this.problems = named;
  }
}

/** Returns a value as an error line shows it: JSON, cut, and without what may be a login before an "@". */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = (JSON.stringify(value) ?? String(value)).replace(STRING, (quoted) => withoutLogin(quoted));
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

const STRING = /(?<!\\)"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Returns a text without its login, for example `https://***@mirror.example.com`. */
export function withoutLogin(text: string): string {
  return text.replace(/^("?(?:https?:\/\/)?).*@/is, '$1***@');
}
