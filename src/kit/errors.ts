/** Returns the message of an error, or the text of any other value that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns the code that the operating system, Node.js or undici gives a failure, such as `ENOENT`; empty if there is
 * none. Their messages may name more than a log should show.
 */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
