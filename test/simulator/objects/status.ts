import type { JsonObject } from '../json.ts';
import type { Resource } from './resources.ts';

/** A refusal in the shape of the API server: a `Status` object with its HTTP code. */
export class ApiError extends Error {
  readonly code: number;
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: number, reason: string, message: string, details?: JsonObject, headers = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.body = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason === '' ? {} : { reason }),
      ...(details ? { details } : {}),
      code,
    };
  }
}

/** One entry of `details.causes`. */
export interface Cause {
  readonly reason: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  readonly field: string;
  readonly message: string;
}

export const cause = {
  forbidden: (field: string, message: string): Cause => ({
    reason: 'FieldValueForbidden',
    field,
    message: `Forbidden: ${message}`,
  }),
  invalid: (field: string, value: unknown, message: string): Cause => ({
    reason: 'FieldValueInvalid',
    field,
    message: `Invalid value: ${JSON.stringify(value)}: ${message}`,
  }),
  required: (field: string, message = ''): Cause => ({
    reason: 'FieldValueRequired',
    field,
    message: message === '' ? 'Required value' : `Required value: ${message}`,
  }),
  duplicate: (field: string, value: unknown): Cause => ({
    reason: 'FieldValueDuplicate',
    field,
    message: `Duplicate value: ${JSON.stringify(value)}`,
  }),
};

const plural = (resource: Resource) =>
  resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
const details = (resource: Resource, name: string, kind = resource.plural): JsonObject => ({
  ...(name === '' ? {} : { name }),
  ...(resource.group === '' ? {} : { group: resource.group }),
  kind,
});

export const badRequest = (message: string) => new ApiError(400, 'BadRequest', message);
export const unauthorized = () => new ApiError(401, 'Unauthorized', 'Unauthorized');
export const notFound = (resource: Resource, name: string) =>
  new ApiError(404, 'NotFound', `${plural(resource)} "${name}" not found`, details(resource, name));
export const alreadyExists = (resource: Resource, name: string) =>
  new ApiError(409, 'AlreadyExists', `${plural(resource)} "${name}" already exists`, details(resource, name));
export const conflict = (resource: Resource, name: string, message: string) =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${plural(resource)} "${name}": ${message}`,
    details(resource, name),
  );
export const stale = (resource: Resource, name: string) =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
export const forbidden = (resource: Resource, name: string, message: string) =>
  new ApiError(
    403,
    'Forbidden',
    `${plural(resource)}${name === '' ? '' : ` "${name}"`} is forbidden: ${message}`,
    details(resource, name),
  );
export const expired = (message: string) => new ApiError(410, 'Expired', message);

/** A JSON Patch that cannot be applied: a failed `test`, a missing path. Says nothing of the reason, as the real server. */
export const patchRejected = () =>
  new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {});

export function invalid(resource: Resource, name: string, causes: readonly Cause[]): ApiError {
  const kind = resource.group === '' ? resource.kind : `${resource.kind}.${resource.group}`;
  const all = causes.map(({ field, message }) => `${field}: ${message}`);
  const message = `${kind} "${name}" is invalid: ${all.length === 1 ? all[0] : `[${all.join(', ')}]`}`;
  return new ApiError(422, 'Invalid', message, { ...details(resource, name, resource.kind), causes });
}
