import { isObject, type JsonObject, objectAt, stringAt } from './json.ts';

/**
 * What runtimes say of ENOEXEC: Go's text, and strerror's with a capital (crun). runc and crun can say so only to the container's
 * own stderr, as they have given every other channel away by then (opencontainers/runc#3926, #4170: "exec /app: exec format
 * error", exit code 255; crun: "exec container process `/app`: Exec format error"): the status has it where the container's
 * terminationMessagePolicy is FallbackToLogsOnError. Runtimes that load the program themselves (gVisor: "starting container:
 * … failed to load /app: exec format error") fail the start: StartError, RunContainerError.
 */
const EXEC_FORMAT_ERROR = /exec format error/i;

/**
 * The name of the first container, init containers before the others, that does not run and last died with an exec format
 * error, by a pod's `status`. Called for every event of every pod: it makes nothing where there is no such container.
 */
export function readStartError(status: JsonObject): string | undefined {
  return failedContainer(status.initContainerStatuses) ?? failedContainer(status.containerStatuses);
}

function failedContainer(statuses: unknown): string | undefined {
  if (!Array.isArray(statuses)) return undefined;
  for (const container of statuses) {
    if (isObject(container) && hasFailed(container)) return stringAt(container, 'name') ?? '';
  }
  return undefined;
}

/** While it waits for its next start (CrashLoopBackOff), only its last state says what it died of. */
function hasFailed(container: JsonObject): boolean {
  const state = objectAt(container, 'state');
  if (isObject(state.running)) return false;
  return saysSo(state.waiting) || saysSo(state.terminated) || saysSo(objectAt(container, 'lastState').terminated);
}

function saysSo(state: unknown): boolean {
  if (!isObject(state)) return false;
  const { message, reason } = state;
  return (
    (typeof message === 'string' && EXEC_FORMAT_ERROR.test(message)) ||
    (typeof reason === 'string' && EXEC_FORMAT_ERROR.test(reason))
  );
}
