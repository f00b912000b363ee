import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { MANAGED_ANNOTATION, PLACE_POLICY } from '../../names.ts';
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
 * How many entries of each kind are recorded and read. Anybody can write the annotation, and each entry costs a search of the whole
 * pod.
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
