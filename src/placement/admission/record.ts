import { isSame, type JsonObject, listAt, objectAt } from '../../kit/json.ts';
import { ARCHITECTURE_GATE, MANAGED_ANNOTATION } from '../../names.ts';
import { MOST_RECORDED, type PodRecord, readPodRecord } from '../objects/pod-record.ts';
import { addedTo, hasRequirement, withAffinity } from '../patch/affinity.ts';
import { lacking } from '../patch/tolerations.ts';
import type { PlacementIntent } from '../placing.ts';

const ANNOTATION_PATH = ['metadata', 'annotations'] as const;
/** The limit for all annotations together (apimachinery `TotalAnnotationSizeLimitB`), in bytes. */
const ANNOTATION_BYTES = 256 * 1024;

/** Adds an annotation; undefined if the annotations would be too large for the API server. */
export function withAnnotation(object: JsonObject, name: string, text: string): JsonObject | undefined {
  const annotations = { ...objectAt(objectAt(object, 'metadata'), 'annotations'), [name]: text };
  const size = Object.entries(annotations).reduce((sum, texts) => sum + Buffer.byteLength(texts.join('')), 0);
  return size > ANNOTATION_BYTES ? undefined : put(object, ANNOTATION_PATH, annotations);
}

/** Returns the pod with archaware's gate, or without it. */
export function gated(pod: JsonObject, isGated: boolean): JsonObject {
  const gates = listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [];
  const others = gates.filter(({ name }) => name !== ARCHITECTURE_GATE);
  if (others.length < gates.length === isGated) return pod;
  const wanted = isGated ? [...gates, { name: ARCHITECTURE_GATE }] : others;
  return put(pod, ['spec', 'schedulingGates'], nonEmpty(wanted));
}

/**
 * Returns the pod with the tolerations and the affinity of an intent, and the record of what was added. The API server may call again with
 * the first answer in the pod: of the tolerations that the record lists, those that the intent has no more are taken out, and what it
 * requires now is added to what was required then. So a forged record can only narrow the pod. `key`: of archaware's taints.
 */
export function placed(pod: JsonObject, { tolerations, affinity }: PlacementIntent, key: string): JsonObject {
  const earlier = readPodRecord(pod);
  const spec = objectAt(pod, 'spec');
  const present = listAt(spec, 'tolerations') ?? [];
  const ours = (earlier?.tolerations ?? []).filter((each) => each.key === key);
  const outdated = ours.filter((each) => !tolerations.some((wanted) => isSame(each, wanted)));
  const kept = outdated.length === 0 ? present : withoutEach(present, outdated);
  const missing = lacking(kept, tolerations);
  const tolerating =
    missing.length + present.length - kept.length === 0
      ? pod
      : put(pod, ['spec', 'tolerations'], nonEmpty([...kept, ...missing]));
  const required = earlier?.required ?? [];
  const narrowed = affinity && withAffinity({ ...spec, ours: required }, affinity);
  const after = narrowed === undefined ? tolerating : put(tolerating, ['spec', 'affinity'], narrowed);
  const now = objectAt(after, 'spec');
  return withRecord(after, earlier, {
    tolerations: [...ours.filter((each) => kept.some((one) => isSame(one, each))), ...missing],
    required: [
      ...required.filter((each) => hasRequirement(now, each)),
      ...addedTo(spec, now, affinity?.required ?? []).map(({ key: label, values }) => ({ key: label, values })),
    ].slice(0, MOST_RECORDED),
  });
}

/** Writes the record, unless the pod's annotations would then be too large for the API server. Without anything to record it goes. */
function withRecord(pod: JsonObject, earlier: PodRecord | undefined, record: PodRecord): JsonObject {
  if (record.tolerations.length + record.required.length > 0) {
    return withAnnotation(pod, MANAGED_ANNOTATION, JSON.stringify(record)) ?? pod;
  }
  if (earlier === undefined) return pod;
  const annotations = { ...objectAt(objectAt(pod, 'metadata'), 'annotations') };
  delete annotations[MANAGED_ANNOTATION];
  return put(pod, ANNOTATION_PATH, Object.keys(annotations).length === 0 ? undefined : annotations);
}

/** Removes one equal toleration for each of archaware's. */
function withoutEach(present: readonly JsonObject[], ours: PodRecord['tolerations']): JsonObject[] {
  const left = [...ours];
  return present.filter((toleration) => {
    const index = left.findIndex((own) => isSame(toleration, own));
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/** Returns a copy of the object with another value at a path; undefined removes the field. */
export function put(object: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return object;
  const copy: Record<string, unknown> = { ...object };
  const next = rest.length === 0 ? value : put(objectAt(object, name), rest, value);
  if (next === undefined) delete copy[name];
  else copy[name] = next;
  return copy;
}

function nonEmpty<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items;
}
