import { isObject, type JsonObject, listAt, objectAt, parseJson } from '../../kit/json.ts';
import { FIELD_MANAGER } from '../../names.ts';

/** Archaware's entry in the `metadata.managedFields` of a DaemonSet. */
export type FieldsEntry = {
  /** Its place in the list. */
  readonly index: number;
  /** Whether it owns a field of the spec: then the list of tolerations, which archaware wrote last, is archaware's alone. */
  readonly ownsSpec: boolean;
};

/** Finds archaware's entry. Undefined if there is none. */
export function readEntry(metadata: JsonObject): FieldsEntry | undefined {
  const entries = listAt(metadata, 'managedFields') ?? [];
  const index = entries.findIndex(
    ({ manager, operation, subresource }) => manager === FIELD_MANAGER && operation === 'Update' && !subresource,
  );
  const entry = entries[index];
  return entry && { index, ownsSpec: 'f:spec' in fieldsOf(entry) };
}

/**
 * Whether a server-side apply set the list of tolerations of the template last. Then the list is what its author's source says.
 * `kubectl rollout undo` is no apply.
 */
export function isListApplied(metadata: JsonObject): boolean {
  return (listAt(metadata, 'managedFields') ?? []).some((entry) => {
    if (entry.operation !== 'Apply') return false;
    const spec = objectAt(objectAt(objectAt(fieldsOf(entry), 'f:spec'), 'f:template'), 'f:spec');
    return 'f:tolerations' in spec;
  });
}

function fieldsOf({ fieldsV1 }: JsonObject): JsonObject {
  const fields = typeof fieldsV1 === 'string' ? parseJson(fieldsV1) : fieldsV1;
  return isObject(fields) ? fields : {};
}
