import { EXIT } from '../app/context.ts';

/** The names of errors that the user corrects on the command line or in a file. */
const USAGE_ERRORS: ReadonlySet<string> = new Set(['ConfigurationError', 'KubeconfigError']);

/** Returns what to print for an error that ended a command, and the exit code. A stack trace would help nobody. */
export function failureLines(error: unknown): { readonly lines: readonly string[]; readonly code: number } {
  const isUsage = error instanceof Error && USAGE_ERRORS.has(error.name);
  return { lines: describe(error).split('\n'), code: isUsage ? EXIT.usage : EXIT.failed };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError') return 'interrupted';
  const status = error.name === 'ApiError' && 'status' in error ? error.status : undefined;
  if (status === 403) return `${error.message}; grant it the roles in manifests/archaware-controller.yaml`;
  if (status === 401) return `${error.message}; log in again, or name other credentials with --kubeconfig or --context`;
  return error.message;
}
