import { randomUUID } from 'node:crypto';
import { at, type JsonObject, object, text } from '../json.ts';
import type { Address, Resource } from './resources.ts';
import { badRequest, conflict, invalid, stale } from './status.ts';
import { nameOf, uidOf } from './store.ts';

/** A time in milliseconds since the epoch as metav1.Time has it: in seconds. */
export const timeText = (wall: number) => new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');

/** `deleteOptions.preconditions`: another object under the name, or a later state of it, answers 409. */
export function checkPreconditions(resource: Resource, current: JsonObject, preconditions: JsonObject): void {
  for (const [field, title, what] of [
    ['uid', 'UID', 'deleted and then recreated'],
    ['resourceVersion', 'ResourceVersion', 'modified'],
  ] as const) {
    const [wanted, found] = [text(preconditions[field]), text(at(current, 'metadata', field))];
    if (wanted === '' || wanted === found) continue;
    const message = `the ${title} in the precondition (${wanted}) does not match the ${title} in record (${found}). The object might have been ${what}`;
    throw conflict({ ...resource, plural: resource.kind }, nameOf(current), message);
  }
}

/** The metadata of a new object. */
export function newMetadata(
  resource: Resource,
  namespace: string,
  given: JsonObject,
  now: string,
  uid: () => string = randomUUID,
): JsonObject {
  const { resourceVersion, managedFields: _fields, selfLink: _link, ...rest } = given;
  if (text(resourceVersion) !== '') throw badRequest('resourceVersion should not be set on objects to be created');
  if (text(given.namespace) !== '' && given.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  const prefix = text(given.generateName);
  const name = text(given.name) || (prefix === '' ? '' : `${prefix}${nameSuffix()}`);
  if (name === '') {
    const message = 'Required value: name or generateName is required';
    throw invalid(resource, '', [{ reason: 'FieldValueRequired', field: 'metadata.name', message }]);
  }
  return {
    ...rest,
    name,
    ...(resource.namespaced ? { namespace } : {}),
    uid: uid(),
    creationTimestamp: now,
    ...(resource.generation ? { generation: 1 } : {}),
  };
}

/** A new object as admission sees it: its uid and times come later, and so does a name that was not given. */
export function unborn(item: JsonObject, hasName: boolean): JsonObject {
  const { uid: _uid, creationTimestamp: _time, generation: _generation, name, ...rest } = object(item.metadata);
  return { ...item, metadata: { ...(hasName ? { name } : {}), ...rest } };
}

/** The object that admission let through, with the metadata that it could not see. */
export function born(item: JsonObject, { uid, creationTimestamp, generation, name }: JsonObject): JsonObject {
  const own = object(item.metadata);
  const late = { uid, creationTimestamp, ...(generation === undefined ? {} : { generation }) };
  return { ...item, metadata: { ...own, name: text(own.name) || name, ...late } };
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
let suffixes = Date.now() % 1_000_000;

/** Five characters, each combination once: a counter, scattered by a factor without a common divisor with 27^5. */
export function nameSuffix(): string {
  suffixes += 1;
  let rest = (suffixes * 7_368_787) % ALPHABET.length ** 5;
  let suffix = '';
  for (let digit = 0; digit < 5; digit += 1) {
    suffix += ALPHABET[rest % ALPHABET.length];
    rest = Math.floor(rest / ALPHABET.length);
  }
  return suffix;
}

/** A PUT or patch is for this object, and for this state of it if it names one. */
export function checkIdentity({ resource, name }: Address, previous: JsonObject, changed: JsonObject): void {
  const metadata = object(changed.metadata);
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${text(metadata.name)}) does not match the name on the URL (${name})`);
  }
  const uid = text(metadata.uid);
  if (uid !== '' && uid !== uidOf(previous)) {
    const message = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${uidOf(previous)}`;
    throw conflict(resource, name, message);
  }
  const version = text(metadata.resourceVersion);
  if (version === '' && !resource.unconditional) {
    const message = 'Invalid value: 0: must be specified for an update';
    throw invalid(resource, name, [{ reason: 'FieldValueInvalid', field: 'metadata.resourceVersion', message }]);
  }
  if (version !== '' && version !== at(previous, 'metadata', 'resourceVersion')) throw stale(resource, name);
}
