/** Why a file of the operator's is of no use. The message says where in it, and holds nothing of a secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** What the operating system calls a failure, as `ENOENT`: its own words may name more than the file. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}
