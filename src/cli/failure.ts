import { EXIT } from '../app/surroundings.ts';
import { READER_ROLE } from '../names.ts';

/** The names of errors that the user corrects on the command line or in a file. */
const USAGE_ERRORS: ReadonlySet<string> = new Set(['ConfigurationError', 'KubeconfigError']);

/** What a person asks for who lacks the right to read. */
export const READER_HINT = `an administrator can grant you the ClusterRole ${READER_ROLE}: docs/rights.md`;

/**
 * Returns what to print for an error that ended a command, and the exit code. A stack trace would help nobody. `account`: whose
 * rights are missing if the API server refused.
 */
export function failureLines(
  error: unknown,
  account: keyof typeof ADVICE,
): { readonly lines: readonly string[]; readonly code: number } {
  const isUsage = error instanceof Error && USAGE_ERRORS.has(error.name);
  return { lines: describe(error, account).split('\n'), code: isUsage ? EXIT.usage : EXIT.failed };
}

/** The rights of the controller are no advice for a person: they read all pull secrets, and write to all pods and nodes. */
const ADVICE = {
  controller: 'grant it the roles in manifests/archaware-controller.yaml',
  exec: 'the account of the controller reads no more: run the command outside of its pod, with your own rights (docs/commands.md)',
  cleaner: 'grant this right, or run clean as an administrator (docs/clean.md)',
  reader: READER_HINT,
} as const;

function describe(error: unknown, account: keyof typeof ADVICE): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return 'interrupted';
  const status = error.name === 'ApiError' && 'status' in error ? error.status : undefined;
  if (status === 403) return `${error.message}; ${ADVICE[account]}`;
  if (status === 401) return `${error.message}; log in again, or name other credentials with --kubeconfig or --context`;
  return error.message;
}
