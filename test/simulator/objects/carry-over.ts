import { assign, at, equal, type JsonObject, object } from '../json.ts';
import type { Address } from './resources.ts';

/** Metadata that the server sets, and keeps over every update. */
const KEPT = ['uid', 'creationTimestamp', 'generation', 'managedFields', 'resourceVersion'] as const;

/** An update as admission sees it: a PUT need not name any of the server's metadata. */
export function asSent(item: JsonObject, changed: JsonObject): JsonObject {
  const unnamed = KEPT.filter((field) => at(changed, 'metadata', field) === undefined);
  return unnamed.reduce((shown, field) => assign(shown, ['metadata', field], undefined), item);
}

/** What a writer cannot change: the server's metadata, the status by the object, the spec by the status. */
export function carryOver({ resource, subresource }: Address, previous: JsonObject, changed: JsonObject): JsonObject {
  const { apiVersion, kind } = resource;
  const old = object(previous.metadata);
  const fixed: JsonObject = {};
  for (const field of ['namespace', ...KEPT]) {
    if (old[field] !== undefined) fixed[field] = old[field];
  }
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds']) fixed[field] = old[field];
  const entries = object(changed.metadata).managedFields;
  if (subresource === '' && Array.isArray(entries) && entries.length > 0) fixed.managedFields = entries;
  const next: JsonObject = { ...changed, kind, apiVersion, metadata: { ...object(changed.metadata), ...fixed } };
  if (!resource.status) return next;
  if (subresource === 'status') return { ...next, spec: previous.spec };
  return { ...next, status: previous.status };
}

/** Returns the part of an object whose changes raise its generation. */
export function content(item: JsonObject): JsonObject {
  const { metadata: _metadata, status: _status, ...rest } = item;
  return rest;
}

/** Whether an update changes nothing. */
export function sameContent(previous: JsonObject, next: JsonObject): boolean {
  const without = (item: JsonObject) => assign(item, ['metadata', 'resourceVersion'], undefined);
  return equal(without(previous), without(next));
}
