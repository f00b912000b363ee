import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';

/** An answer of the API server that is no success: its `Status` object, read. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 where there was no answer at all. */
  readonly status: number;
  /** `Status.reason`, as `NotFound`, `Expired`, `Invalid`; empty where there was none. */
  readonly reason: string;
  /** Whether `Status.details` names causes: a field error or a policy's denial. */
  readonly hasCauses: boolean;
  /** Of an expired list: a token with which it can be read on, as the collection is by now; empty where there was none. */
  readonly continueToken: string;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, body: unknown, request: string, retryAfterMs?: number) {
    const object: JsonObject = isObject(body) ? body : {};
    super(`${request}: ${status} ${stringAt(object, 'message') ?? stringAt(object, 'reason') ?? 'no message'}`);
    this.status = status;
    this.reason = stringAt(object, 'reason') ?? '';
    this.hasCauses = (listAt(objectAt(object, 'details'), 'causes') ?? []).length > 0;
    this.continueToken = stringAt(objectAt(object, 'metadata'), 'continue') ?? '';
    this.retryAfterMs = retryAfterMs;
  }
}

/** A request that got no answer: refused, reset, timed out. The message names the server, not its addresses. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** Refused here, before anything was sent: the lease is not fresh, so another replica may lead. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/**
 * Whether a refused JSON Patch failed because the object is no longer as it was read (a `test` failed, 409), so that
 * reading again and deciding again helps. A failed `test` is a 422 without causes and with this very message.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 409) return true;
  return error.status === 422 && !error.hasCauses && error.message.includes('rejected our request due to an error');
}

/** Whether the API server answered a write with anything but success, a conflict, or that the object is gone. */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && !isConflict(error) && !isGone(error);
}

/** The names of the policies that hold our own service account to its job. */
const OWN_POLICY = 'archaware-guard-';

/**
 * Whether a refusal, if it lasts, is about what was written to this object: a field that may not be so, or somebody's
 * policy. Not for missing rights (an API server that starts answers 403 until it has read its roles), not for a server
 * that has too much to do, and not where a policy of our own does not fit the configuration: those pass, or are put right.
 */
export function concernsObject(error: ApiError): boolean {
  return [400, 403, 422].includes(error.status) && error.hasCauses && !error.message.includes(OWN_POLICY);
}

/** Whether the object is gone. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Whether a list or watch must start anew: its resource version, or its continue token, is too old. */
export function isExpired(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired');
}

/**
 * Whether a watch asked for a version that the server has not reached: its etcd was restored from a backup. The answer
 * is a 504 whose message says so, and never goes away by itself.
 */
export function isFromTheFuture(error: unknown): boolean {
  return error instanceof ApiError && error.status === 504 && error.message.includes('Too large resource version');
}
