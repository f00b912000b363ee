/** Everything that is wrong with a configuration, a line each; nothing of it was applied. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
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
