import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../../kit/json.ts';
import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, MANAGED_ANNOTATION, OS_LABEL } from '../../names.ts';
import {
  type AddedRequirement,
  addedTo,
  PREFERRED_TERMS,
  preferredTerm,
  REQUIRED,
  type Requirement,
} from '../patch/affinity.ts';
import { lacking, type Toleration } from '../patch/tolerations.ts';
import type { PlacementIntent } from '../placing.ts';
import type { Preference } from '../preference.ts';
import type { Settings } from '../settings.ts';

/** What admission added to a pod, as recorded in the annotation `archaware.dev/managed`. */
export type PodManaged = {
  readonly tolerations: readonly Toleration[];
  readonly required: readonly AddedRequirement[];
  readonly preferred: readonly Preference[];
};

/**
 * Signs records and recognises the signatures of all replicas. Only a signed record is believed: the author of a pod can write
 * the annotation too, and another webhook may require of a pod exactly what archaware would have added.
 */
export type Seal = {
  /** Returns the signature of a text. */
  sign(text: string): string;
  isSigned(text: string, signature: string): boolean;
  /**
   * Returns a value that is another one as soon as a text may get another signature, or an old signature may no longer count.
   * Undefined: no signature is ever given twice.
   */
  epoch(): unknown;
};

const ANNOTATION_PATH = ['metadata', 'annotations'] as const;
/** The version of the signed text; a later version may cover more fields. */
const SIGNED_VERSION = 'v1';
/**
 * How many entries of each kind are recorded and read. Anybody can write the annotation, and each entry costs a search of the whole
 * pod.
 */
const MOST_GIVEN = 64;
/** The limit for all annotations together (apimachinery `TotalAnnotationSizeLimitB`), in bytes. */
const ANNOTATION_BYTES = 256 * 1024;

/** Returns which parts of an intent were added to a pod; undefined if nothing was. */
export function recordOf(before: JsonObject, after: JsonObject, placing: PlacementIntent): PodManaged | undefined {
  const [old, now] = [objectAt(before, 'spec'), objectAt(after, 'spec')];
  const tolerations = lacking(listAt(old, 'tolerations') ?? [], placing.tolerations);
  const { required = [], preferred = [] } = placing.affinity ?? {};
  const added: PodManaged = {
    tolerations,
    required: addedTo(old, now, required).slice(0, MOST_GIVEN),
    preferred: affinityOf(old)[PREFERRED_TERMS] === affinityOf(now)[PREFERRED_TERMS] ? [] : preferred,
  };
  const isNothing = added.tolerations.length + added.required.length + added.preferred.length === 0;
  return isNothing ? undefined : added;
}

/** Adds the signed annotation to the pod, unless the pod's annotations would then be too large for the API server. */
export function withRecord(pod: JsonObject, record: PodManaged, namespace: string, seal: Seal): JsonObject {
  const signature = seal.sign(signedText(pod, namespace, record));
  return withAnnotation(pod, MANAGED_ANNOTATION, JSON.stringify({ ...record, signature })) ?? pod;
}

/** Returns the text that a signature covers. It names the pod, so that a record copied from another pod is not believed. */
function signedText(pod: JsonObject, namespace: string, record: object): string {
  const metadata = objectAt(pod, 'metadata');
  const [name, prefix] = [stringAt(metadata, 'name') || '', stringAt(metadata, 'generateName') || ''];
  // A pod has no name yet if the API server is going to generate one.
  return JSON.stringify([SIGNED_VERSION, namespace, ...(name === '' ? ['', prefix] : [name]), record]);
}

/** Whether archaware wrote the annotation on this pod. */
function isSigned(pod: JsonObject, namespace: string, seal: Seal): boolean {
  const { signature, ...record } = parsedRecord(pod) ?? {};
  return typeof signature === 'string' && seal.isSigned(signedText(pod, namespace, record), signature);
}

function parsedRecord(pod: JsonObject): JsonObject | undefined {
  const text = stringAt(objectAt(objectAt(pod, 'metadata'), 'annotations'), MANAGED_ANNOTATION);
  const parsed = text === undefined ? undefined : parseJson(text);
  return isObject(parsed) ? parsed : undefined;
}

/** Adds an annotation; undefined if the annotations would be too large for the API server. */
export function withAnnotation(object: JsonObject, name: string, text: string): JsonObject | undefined {
  const annotations = { ...objectAt(objectAt(object, 'metadata'), 'annotations'), [name]: text };
  const size = Object.entries(annotations).reduce((sum, texts) => sum + Buffer.byteLength(texts.join('')), 0);
  return size > ANNOTATION_BYTES ? undefined : put(object, ANNOTATION_PATH, annotations);
}

/**
 * Reads the annotation of a pod, signed or not; undefined if it is absent or invalid. The author of a pod may write anything
 * there. Nothing may be removed from a pod because of it, unless it is signed.
 */
export function readPodManaged(pod: JsonObject): PodManaged | undefined {
  const parsed = parsedRecord(pod);
  if (parsed === undefined) return undefined;
  const entries = (field: string) => (listAt(parsed, field) ?? []).slice(0, MOST_GIVEN);
  return {
    tolerations: entries('tolerations').flatMap(readToleration),
    required: entries('required').flatMap(readRequirement),
    preferred: entries('preferred').flatMap(({ architecture, weight }) =>
      typeof architecture === 'string' && typeof weight === 'number' ? { architecture, weight } : [],
    ),
  };
}

function readToleration(entry: JsonObject): Toleration | [] {
  const { key, value, effect } = entry;
  if (typeof key !== 'string' || typeof value !== 'string' || typeof effect !== 'string') return [];
  return { key, operator: 'Equal', value, effect };
}

function readRequirement({ key, values, term }: JsonObject): AddedRequirement | [] {
  if (typeof key !== 'string' || !Array.isArray(values)) return [];
  const requirement = { key, operator: 'In', values: values.filter((value) => typeof value === 'string') } as const;
  return typeof term === 'number' ? { term, ...requirement } : requirement;
}

/** The settings that limit what admission may have added. */
type Given = Pick<Settings, 'taints' | 'matchNodeLabels'>;

/** Returns the entries that archaware can have written. Other entries stay on the pod, even if the annotation lists them. */
function possible(managed: PodManaged, { taints, matchNodeLabels }: Given): PodManaged {
  const keys = new Set([ARCHITECTURE_LABEL, OS_LABEL, ...matchNodeLabels]);
  return {
    tolerations: managed.tolerations.filter(({ key, effect }) => key === taints.key && effect === taints.effect),
    required: managed.required.filter(({ key }) => keys.has(key)),
    preferred: managed.preferred,
  };
}

/** Returns the pod without archaware's gate. */
export function ungated(pod: JsonObject): JsonObject {
  const gates = listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [];
  const others = gates.filter(({ name }) => name !== ARCHITECTURE_GATE);
  return others.length === gates.length ? pod : put(pod, ['spec', 'schedulingGates'], nonEmpty(others));
}

/**
 * Returns the pod as its author wrote it: without the gate, without the signed annotation and without what it lists. Another
 * webhook may have changed some of that since. A changed entry no longer counts as archaware's, and stays.
 */
export function asAuthored(pod: JsonObject, given: Given, namespace: string, seal: Seal): JsonObject {
  const recorded = readPodManaged(pod);
  if (recorded === undefined || !isSigned(pod, namespace, seal)) return ungated(pod);
  const managed = possible(recorded, given);
  const annotations = { ...objectAt(objectAt(pod, 'metadata'), 'annotations') };
  delete annotations[MANAGED_ANNOTATION];
  const unmarked = put(ungated(pod), ANNOTATION_PATH, nonEmptyObject(annotations));
  const tolerations = listAt(objectAt(pod, 'spec'), 'tolerations') ?? [];
  const own = withoutEach(tolerations, managed.tolerations);
  const untolerating =
    own.length === tolerations.length ? unmarked : put(unmarked, ['spec', 'tolerations'], nonEmpty(own));
  return withoutOurAffinity(untolerating, managed);
}

function withoutOurAffinity(pod: JsonObject, managed: PodManaged): JsonObject {
  const affinity = objectAt(objectAt(pod, 'spec'), 'affinity');
  const node = { ...objectAt(affinity, 'nodeAffinity') };
  const required = widened(node[REQUIRED], managed.required);
  const preferred = listAt(node, PREFERRED_TERMS) ?? [];
  const unpreferred = withoutEach(preferred, managed.preferred.map(preferredTerm));
  if (required === node[REQUIRED] && unpreferred.length === preferred.length) return pod;
  set(node, REQUIRED, required);
  if (unpreferred.length < preferred.length) set(node, PREFERRED_TERMS, nonEmpty(unpreferred));
  const rest = { ...affinity };
  set(rest, 'nodeAffinity', nonEmptyObject(node));
  return put(pod, ['spec', 'affinity'], nonEmptyObject(rest));
}

/**
 * Removes archaware's requirements from the required terms; undefined if nothing else was in them. A requirement that is not in
 * its recorded term is looked for in all terms: another webhook may have inserted or reordered terms.
 */
function widened(required: unknown, ours: readonly AddedRequirement[]): unknown {
  if (!isObject(required) || !Array.isArray(required.nodeSelectorTerms)) return required;
  const before: readonly unknown[] = required.nodeSelectorTerms;
  const terms = [...before];
  const take = (index: number, own: Requirement) => {
    const term = terms[index];
    const expressions = (isObject(term) && listAt(term, 'matchExpressions')) || [];
    const rest = withoutEach(expressions, [own]);
    if (!isObject(term) || rest.length === expressions.length) return false;
    terms[index] = put(term, ['matchExpressions'], nonEmpty(rest));
    return true;
  };
  const moved = ours.flatMap(({ term, ...own }) => (term !== undefined && take(term, own) ? [] : own));
  for (const own of moved) terms.some((_, index) => take(index, own));
  if (terms.every((term, index) => term === before[index])) return required;
  // An empty term matches no node, so the pod would stay Pending forever. A term that is empty now had only archaware's entries.
  const left = terms.filter((term, index) => term === before[index] || !isObject(term) || nonEmptyObject(term));
  return left.length === 0 ? undefined : { ...required, nodeSelectorTerms: left };
}

/** Removes one equal item for each of archaware's entries. */
function withoutEach(items: readonly JsonObject[], ours: readonly JsonObject[]): JsonObject[] {
  // A list may be huge, and most items are not archaware's. The index rules those out with one lookup.
  const byName = new Map<unknown, JsonObject[]>();
  for (const own of ours) byName.set(nameOf(own), [...(byName.get(nameOf(own)) ?? []), own]);
  return items.filter((item) => {
    const own = byName.get(nameOf(item)) ?? [];
    const index = own.findIndex((entry) => isSame(item, entry));
    if (index >= 0) own.splice(index, 1);
    return index < 0;
  });
}

/** Returns an index key for a toleration, an expression or a preference. */
function nameOf({ key, weight }: JsonObject): unknown {
  return key ?? weight;
}

/** Whether a value is the same JSON as one of archaware's entries, which are never deep. */
function isSame(value: unknown, ours: unknown): boolean {
  if (Array.isArray(ours)) {
    return (
      Array.isArray(value) && value.length === ours.length && ours.every((item, index) => isSame(value[index], item))
    );
  }
  if (!isObject(ours) || !isObject(value)) return value === ours;
  for (const name in ours) if (!isSame(value[name], ours[name])) return false;
  return Object.keys(value).length === Object.keys(ours).length;
}

function affinityOf(spec: JsonObject): JsonObject {
  return objectAt(objectAt(spec, 'affinity'), 'nodeAffinity');
}

/** Returns a copy of the object with another value at a path; undefined removes the field. */
export function put(object: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return object;
  const copy: Record<string, unknown> = { ...object };
  set(copy, name, rest.length === 0 ? value : put(objectAt(object, name), rest, value));
  return copy;
}

function set(object: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete object[name];
  else object[name] = value;
}

function nonEmpty<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items;
}

function nonEmptyObject(object: JsonObject): JsonObject | undefined {
  return Object.keys(object).length === 0 ? undefined : object;
}
