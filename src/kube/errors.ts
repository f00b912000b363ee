import { strangersText } from '../kit/cut.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import { KubeconfigError } from './access.ts';

/** An answer of the API server that is not a success, with the fields of its `Status` object. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 if there was no answer at all. */
  readonly status: number;
  /** `Status.reason`, for example `NotFound`, `Expired` or `Invalid`; empty if there was none. */
  readonly reason: string;
  /** Whether `Status.details` names causes, as for a field error or a policy's denial. */
  readonly hasCauses: boolean;
  /**
   * From the answer to an expired list: a token that continues the list with the current state of the collection. Empty if there was none.
   */
  readonly continueToken: string;
  /** How long the server asks to wait; at most 30 seconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, body: unknown, request: string, retryAfterMs?: number) {
    const object: JsonObject = isObject(body) ? body : {};
    // A policy or webhook of others may have written the message, and what a tenant wrote can be quoted in it.
    const message = strangersText(stringAt(object, 'message') ?? stringAt(object, 'reason') ?? 'no message');
    super(`${request}: ${status} ${message}`);
    this.status = status;
    this.reason = stringAt(object, 'reason') ?? '';
    this.hasCauses = (listAt(objectAt(object, 'details'), 'causes') ?? []).length > 0;
    this.continueToken = stringAt(objectAt(object, 'metadata'), 'continue') ?? '';
    this.retryAfterMs = retryAfterMs;
  }
}

/** A request without an answer: refused, reset or timed out. The message names the server, not its addresses. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** A write that the program itself refused before it was sent: the Lease is not fresh, so another replica may lead. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/**
 * Whether a JSON Patch was refused because the object has changed since it was read (a `test` failed, or 409), so that
 * reading and deciding again helps. A failed `test` is a 422 without causes and with exactly this message.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 409) return true;
  return error.status === 422 && !error.hasCauses && error.message.includes('rejected our request due to an error');
}

/** Whether the API server refused a request because a right is missing. */
export function isForbidden(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 403;
}

/** Whether the API server answered a write with an error other than a conflict or "not found". */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && !isConflict(error) && !isGone(error);
}

/** The prefix of the policies that restrict the controller's own service account. */
const OWN_POLICY = 'archaware-guard-';

/**
 * Whether a refusal, if it lasts, is about the object: a field that is not allowed, or a policy of the cluster. False
 * for missing rights (an API server that starts answers 403 until it has read its roles), for an overloaded server, and
 * for a policy of this project that does not fit the configuration: those pass or get corrected.
 */
export function concernsObject(error: ApiError): boolean {
  return [400, 403, 422].includes(error.status) && error.hasCauses && !error.message.includes(OWN_POLICY);
}

/**
 * Whether a failure is most likely the server's, and ends for all objects at once: no answer, a 5xx, a missing right or login. False if
 * the server says when to ask again.
 */
export function concernsServer(error: unknown): boolean {
  if (error instanceof ConnectionError || error instanceof KubeconfigError) return true;
  if (!(error instanceof ApiError) || error.retryAfterMs !== undefined) return false;
  return error.status >= 500 || ([401, 403].includes(error.status) && !concernsObject(error));
}

/** What the API server says when the fault is not in the request: another webhook or etcd does not answer. */
const AWAY =
  /failed (?:calling|to call) webhook|etcdserver|context deadline exceeded|connection refused|request timed out/i;

/**
 * Whether a 500 may be the refusal of an admission plug-in that answers with the wrong status, as PodTolerationRestriction does.
 * It is one only if the same message lasts while other writes succeed.
 */
export function mayBeWrongStatus({ status, message }: ApiError): boolean {
  return status === 500 && !AWAY.test(message);
}

/** Whether the object is gone. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Whether a list or watch must start over because its resource version or its continue token is too old. */
export function isExpired(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired');
}

/**
 * Whether a watch asked for a version that the server has not reached because its etcd was restored from a backup. The
 * answer is a 504 whose message says so, and it never goes away by itself.
 */
export function isFromTheFuture(error: unknown): boolean {
  return error instanceof ApiError && error.status === 504 && error.message.includes('Too large resource version');
}
