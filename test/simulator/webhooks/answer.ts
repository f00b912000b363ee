import { at, isObject, type JsonObject, object, text } from '../json.ts';
import { ApiError } from '../objects/status.ts';

/** The error for a webhook that could not be called or gave an invalid answer, to which its `failurePolicy` applies. */
export class CallFailure extends Error {}

/** Trouble on the server's side, as it words it. */
export const internalError = (message: string) =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });

/**
 * The JSON Patch of an AdmissionReview's answer, as text; '' for none. Throws what the client sees of a refusal, or a
 * `CallFailure`. (`webhookrequest.VerifyAdmissionResponse`)
 */
export function patchOf(name: string, uid: string, source: string): string {
  const response = at(parse(source), 'response');
  if (!isObject(response)) throw new CallFailure('failed to call webhook: webhook response was absent');
  const invalid = (message: string) => new CallFailure(`received invalid webhook response: ${message}`);
  if (response.uid !== uid) {
    throw invalid(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(text(response.uid))}`);
  }
  const [patch, patchType] = [text(response.patch), response.patchType];
  if (patch !== '' && patchType === undefined) {
    throw invalid('webhook returned response.patch but not response.patchType');
  }
  if (response.allowed !== true) throw denial(name, object(response.status));
  return patch === '' ? '' : decoded(patch);
}

function parse(source: string): unknown {
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new CallFailure(`failed to call webhook: couldn't get version/kind; json parse error: ${String(error)}`);
  }
}

function decoded(patch: string): string {
  const source = Buffer.from(patch, 'base64').toString();
  try {
    if (Array.isArray(JSON.parse(source))) return source;
  } catch {
    // Said below.
  }
  throw new CallFailure('received undecodable patch in webhook response');
}

/** A refusal without a code, or with one that is none of an error, is a 400 (`webhookerrors.ToStatusErr`). */
function denial(name: string, status: JsonObject): ApiError {
  const code = Number(status.code ?? 0);
  const [reason, details] = [text(status.reason), isObject(status.details) ? status.details : undefined];
  const why = text(status.message) || reason;
  const message = `admission webhook "${name}" denied the request${why === '' ? ' without explanation' : `: ${why}`}`;
  return new ApiError(Math.max(code, 400), reason, message, details);
}
