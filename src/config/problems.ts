/** So many problems are named; a file of another kind may have thousands. */
export const MOST_PROBLEMS = 20;

/** What is wrong with a configuration, a line each, the last one counts those that are not named; nothing of it was applied. */
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

/** A value as an error line shows it: JSON, cut, and without what may be a login before an "@". */
export function shown(value: unknown): string {
  const text = (JSON.stringify(value) ?? String(value)).replace(STRING, (quoted) => withoutLogin(quoted));
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

/** A string of JSON. */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** `https://***@mirror.example.com` of a text that holds a login. */
export function withoutLogin(text: string): string {
  return text.replace(/^("?(?:https?:\/\/)?).*@/is, '$1***@');
}
