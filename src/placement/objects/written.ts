import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, FIELD_MANAGER, MANAGED_ANNOTATION } from '../../names.ts';

/** What of a pod archaware wrote, in this process or an earlier one, by the loop or at admission. */
export type Written = {
  /** Whether tolerations of its form are archaware's. */
  readonly tolerations: boolean;
  /** The architectures that archaware's node affinity requires; undefined where it wrote none. */
  readonly architectures: readonly string[] | undefined;
};

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/**
 * Reads what archaware wrote to a pod, as the API server sent it: by `metadata.managedFields` and by the record that
 * admission leaves. Undefined where it wrote nothing, or where an image was changed in place in a later second. The record counts
 * whether or not it is signed: one that its author forged spares that pod a lookup, and takes nothing from any pod
 * (docs/decisions/026-signed-records.md).
 */
export function readWritten(object: JsonObject): Written | undefined {
  const record = recordOf(object);
  const tolerations = wroteTolerations(object) || (listAt(record, 'tolerations') ?? []).length > 0;
  const isRequired = writersOf(object, 'f:affinity').includes(FIELD_MANAGER) || requires(listAt(record, 'required'));
  const architectures = isRequired ? requiredArchitectures(objectAt(object, 'spec')) : undefined;
  if (hasNewerImage(object)) return undefined;
  return tolerations || architectures !== undefined ? { tolerations, architectures } : undefined;
}

/** Whether `metadata.managedFields` says that archaware wrote `spec.tolerations` last: the author's own are not archaware's. */
export function wroteTolerations(object: JsonObject): boolean {
  return writersOf(object, 'f:tolerations').includes(FIELD_MANAGER);
}

/** Who wrote a field of a pod's spec (`f:tolerations`) last, by `metadata.managedFields`. */
export function writersOf(object: JsonObject, field: string): string[] {
  return (listAt(objectAt(object, 'metadata'), 'managedFields') ?? []).flatMap((entry) => {
    const fields = typeof entry.fieldsV1 === 'string' ? parseJson(entry.fieldsV1) : entry.fieldsV1;
    return isObject(fields) && field in objectAt(fields, 'f:spec') ? (stringAt(entry, 'manager') ?? '') : [];
  });
}

/** Whether somebody set an image after archaware's last write, or else after the pod was made. */
function hasNewerImage(object: JsonObject): boolean {
  const metadata = objectAt(object, 'metadata');
  const entries = listAt(metadata, 'managedFields') ?? [];
  const ours = entries.find(({ manager, subresource }) => manager === FIELD_MANAGER && !subresource);
  const written = stringAt(ours ?? {}, 'time') ?? stringAt(metadata, 'creationTimestamp') ?? '';
  return entries.some((entry) => entry !== ours && (stringAt(entry, 'time') ?? '') > written && setsImage(entry));
}

function setsImage({ fieldsV1 }: JsonObject): boolean {
  const fields = typeof fieldsV1 === 'string' ? parseJson(fieldsV1) : fieldsV1;
  const spec = objectAt(isObject(fields) ? fields : {}, 'f:spec');
  return ['f:containers', 'f:initContainers'].some((list) =>
    Object.values(objectAt(spec, list)).some((item) => isObject(item) && 'f:image' in item),
  );
}

function recordOf(object: JsonObject): JsonObject {
  const text = stringAt(objectAt(objectAt(object, 'metadata'), 'annotations'), MANAGED_ANNOTATION);
  const parsed = text === undefined ? undefined : parseJson(text);
  return isObject(parsed) ? parsed : {};
}

function requires(required: readonly JsonObject[] | undefined): boolean {
  return (required ?? []).some(({ key }) => key === ARCHITECTURE_LABEL);
}

/** The values of the first required expression on the architecture. */
function requiredArchitectures(spec: JsonObject): string[] | undefined {
  const required = objectAt(objectAt(objectAt(spec, 'affinity'), 'nodeAffinity'), REQUIRED);
  for (const term of listAt(required, 'nodeSelectorTerms') ?? []) {
    for (const { key, operator, values } of listAt(term, 'matchExpressions') ?? []) {
      if (key !== ARCHITECTURE_LABEL || operator !== 'In' || !Array.isArray(values)) continue;
      return values.filter((value) => typeof value === 'string');
    }
  }
  return undefined;
}
