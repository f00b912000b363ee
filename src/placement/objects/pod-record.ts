import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_LABEL, FIELD_MANAGER, MANAGED_ANNOTATION, PLACE_POLICY } from '../../names.ts';
import type { Toleration } from '../patch/tolerations.ts';

/** A requirement on a node's label that archaware added to required terms of a pod's node affinity. */
export type RecordedRequirement = { readonly key: string; readonly values: readonly string[] };

/** What archaware added to a pod at admission, as recorded in the annotation `archaware.dev/managed`. */
export type PodRecord = {
  readonly tolerations: readonly Toleration[];
  readonly required: readonly RecordedRequirement[];
  /** Whether the policy `archaware-place` wrote it, in the API server. */
  readonly byPolicy?: true;
};

/**
 * How many entries of each kind are recorded and read. Anybody can write the annotation, and each entry costs a search of the whole pod.
 */
export const MOST_RECORDED = 64;

/**
 * Reads the annotation of a pod; undefined if it is absent or invalid. The author of a pod may write anything there, so whoever reads it
 * may only narrow that pod because of it (docs/decisions/026-records-narrow.md).
 */
export function readPodRecord(pod: JsonObject): PodRecord | undefined {
  const text = stringAt(objectAt(objectAt(pod, 'metadata'), 'annotations'), MANAGED_ANNOTATION);
  const parsed = text === undefined ? undefined : parseJson(text);
  if (!isObject(parsed)) return undefined;
  const entries = (field: string) => (listAt(parsed, field) ?? []).slice(0, MOST_RECORDED);
  return {
    tolerations: entries('tolerations').flatMap(readToleration),
    required: entries('required').flatMap(readRequirement),
    ...(parsed.by === PLACE_POLICY ? { byPolicy: true } : {}),
  };
}

function readToleration({ key, value, effect }: JsonObject): Toleration | [] {
  if (typeof key !== 'string' || typeof value !== 'string' || typeof effect !== 'string') return [];
  return { key, operator: 'Equal', value, effect };
}

function readRequirement({ key, values }: JsonObject): RecordedRequirement | [] {
  if (typeof key !== 'string' || !Array.isArray(values)) return [];
  return { key, values: values.filter((value) => typeof value === 'string') };
}

/** What archaware wrote to a pod, in this process or an earlier one, by the controller or at admission. */
export type Written = {
  /** Whether the pod's tolerations that have archaware's form were written by archaware. */
  readonly tolerations: boolean;
  /** The architectures that archaware's node affinity requires; undefined if it wrote none. */
  readonly architectures: readonly string[] | undefined;
  /** Whether the policy `archaware-place` placed the pod as it was created, by what a leader had published. */
  readonly byPolicy?: true;
};

const NOTHING: PodRecord = { tolerations: [], required: [] };
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/**
 * Reads what archaware wrote to a pod from `metadata.managedFields` and from the record that admission leaves on it. Undefined if
 * archaware wrote nothing, or if an image was changed in place in a later second. A forged record
 * only saves that pod a lookup (docs/decisions/026-records-narrow.md).
 */
export function readWritten(object: JsonObject): Written | undefined {
  const { tolerations: listed, required, byPolicy } = readPodRecord(object) ?? NOTHING;
  const tolerations = wroteTolerations(object) || listed.length > 0;
  const isRecorded = required.some(({ key }) => key === ARCHITECTURE_LABEL);
  const isRequired = isRecorded || writersOf(object, 'f:affinity').includes(FIELD_MANAGER);
  const architectures = isRequired ? requiredArchitectures(objectAt(object, 'spec')) : undefined;
  if (hasNewerImage(object)) return undefined;
  if (!tolerations && architectures === undefined) return undefined;
  return { tolerations, architectures, ...(byPolicy ? { byPolicy } : {}) };
}

/** Whether archaware wrote `spec.tolerations` last, by `metadata.managedFields`. */
export function wroteTolerations(object: JsonObject): boolean {
  return writersOf(object, 'f:tolerations').includes(FIELD_MANAGER);
}

/** Returns the field managers that own a field of a pod's spec (`f:tolerations`), by `metadata.managedFields`. */
export function writersOf(object: JsonObject, field: string): string[] {
  return (listAt(objectAt(object, 'metadata'), 'managedFields') ?? []).flatMap((entry) => {
    const fields = typeof entry.fieldsV1 === 'string' ? parseJson(entry.fieldsV1) : entry.fieldsV1;
    return isObject(fields) && field in objectAt(fields, 'f:spec') ? (stringAt(entry, 'manager') ?? '') : [];
  });
}

/** Whether somebody set an image after archaware's last write (or after the creation of the pod, if there is no such write). */
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

/** Returns what the first required term that speaks of the architecture allows: a second review adds a narrower expression. */
function requiredArchitectures(spec: JsonObject): string[] | undefined {
  const required = objectAt(objectAt(objectAt(spec, 'affinity'), 'nodeAffinity'), REQUIRED);
  for (const term of listAt(required, 'nodeSelectorTerms') ?? []) {
    const sets = (listAt(term, 'matchExpressions') ?? []).flatMap(({ key, operator, values }) =>
      key === ARCHITECTURE_LABEL && operator === 'In' && Array.isArray(values) ? [values] : [],
    );
    const [first, ...others] = sets;
    if (first === undefined) continue;
    return first.filter((value) => typeof value === 'string' && others.every((other) => other.includes(value)));
  }
  return undefined;
}
