/** Why a file of the operator cannot be used. The message says where in the file, and contains nothing of a secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}
