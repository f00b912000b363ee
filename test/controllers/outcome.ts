import type { Result } from '../../src/kube/control-loop.ts';

/** The result of a reconciliation without the text for the log. */
export function outcomeOf({ detail: _detail, ...result }: Result): Result {
  return result;
}
