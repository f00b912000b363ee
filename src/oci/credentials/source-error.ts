/** Why a file of the operator's is of no use. The message says where in it, and holds nothing of a secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}
