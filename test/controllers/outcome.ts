import type { Result } from '../../src/kube/controller.ts';

/** The result of a reconciliation without the text for the log. */
export function outcomeOf({ detail: _detail, ...result }: Result): Result {
  return result;
}
