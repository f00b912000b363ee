import { cut } from '../../kit/cut.ts';
import {
  isObject,
  isSameRecord,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
  stringsAt,
} from '../../kit/json.ts';
import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, MIRROR_ANNOTATION } from '../../names.ts';
import { type Asked, readAsked } from '../asked.ts';
import { lacking, type Toleration } from '../patch/tolerations.ts';
import { createShared } from './equal-values.ts';
import { imageName, type PodImage } from './image.ts';
import { readOs } from './os.ts';
import { type BrokenContainer, readBroken } from './start-error.ts';
import { readWritten, type Written } from './written.ts';

/** The fields that a pod and a pod template have in common and that archaware decides by. */
export type PodTemplate = {
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation `archaware.dev/architectures`, not parsed. */
  readonly statement: string | undefined;
  readonly os: string;
  /** Whether `spec.runtimeClassName` names a RuntimeClass. */
  readonly hasRuntimeClass: boolean;
  /**
   * Distinct images of `initContainers`, `containers` and image volumes, in this order: at most {@link MOST_IMAGES} with
   * {@link MOST_IMAGE_CHARACTERS}, plus one that marks the limit if there are more.
   */
  readonly images: readonly PodImage[];
  /** The tolerations as the API server sent them, with every field; undefined if the field is absent. */
  readonly tolerations: readonly JsonObject[] | undefined;
  readonly priorityClassName: string | undefined;
  /** As {@link readPullSecrets} returns them. */
  readonly pullSecrets: readonly string[];
  readonly serviceAccountName: string;
  /** The architectures that its node selector and its node affinity ask for; undefined: any. */
  readonly asked: Asked | undefined;
};

/** The fields of a gated pod that its release changes or depends on, as the API server sent them. */
export type Gated = {
  /** The whole list. */
  readonly gates: readonly JsonObject[];
  readonly affinity: unknown;
  readonly nodeSelector: unknown;
};

/** The object that controls a pod (`metadata.ownerReferences` with `controller: true`). */
export type Owner = { readonly kind: string; readonly apiVersion: string; readonly name: string; readonly uid: string };

/** A pod, reduced to the fields that archaware reads. */
export type Pod = PodTemplate & {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Undefined before Kubernetes 1.33, where pods have no generation. */
  readonly generation: number | undefined;
  readonly resourceVersion: string;
  /** `metadata.creationTimestamp` in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly deleting: boolean;
  readonly mirror: boolean;
  readonly phase: string;
  readonly nodeName: string | undefined;
  /**
   * The containers that do not run now; undefined for nearly every pod. The same list object as long as its content is the same.
   */
  readonly broken: readonly BrokenContainer[] | undefined;
  readonly owner: Owner | undefined;
  /** Undefined if the pod does not have archaware's gate. */
  readonly gated: Gated | undefined;
  /** What archaware wrote to the pod for its present images; undefined if nothing. */
  readonly written: Written | undefined;
  /**
   * A digest of the fields that are not kept because the pod is too large (`large.ts`); they are empty then, and the pod must be
   * read before it is decided. Undefined for nearly every pod.
   */
  readonly large: string | undefined;
};

/**
 * Reads a pod from the API server's object. Never throws: a field that is missing or has another type counts as absent.
 * `before`: the same pod as read last. Most events change only the status, so the fields that only a new generation can change
 * are then taken from `before`.
 */
export function readPod(object: JsonObject, before?: Pod): Pod {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  const annotations = objectAt(metadata, 'annotations');
  const broken = readBroken(spec, status, before?.uid === metadata.uid ? before?.broken : undefined);
  const known = isSameGeneration(metadata, before) ? before : undefined;
  const template = known ?? readTemplate(metadata, spec);
  // Every field is named: V8 copies an object with so many fields slowly, and this runs twice for each new pod.
  return {
    labels: known === undefined ? template.labels : sameRecord(known.labels, stringsAt(metadata, 'labels')),
    statement: known === undefined ? template.statement : stringAt(annotations, ARCHITECTURES_ANNOTATION),
    os: template.os,
    hasRuntimeClass: template.hasRuntimeClass,
    images: template.images,
    tolerations: template.tolerations,
    priorityClassName: template.priorityClassName,
    pullSecrets: template.pullSecrets,
    serviceAccountName: template.serviceAccountName,
    asked: template.asked,
    namespace: known?.namespace ?? shareName(stringAt(metadata, 'namespace') ?? ''),
    name: known?.name ?? stringAt(metadata, 'name') ?? '',
    uid: known?.uid ?? stringAt(metadata, 'uid') ?? '',
    generation: known?.generation ?? numberAt(metadata, 'generation'),
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    createdAt: known?.createdAt ?? (Date.parse(stringAt(metadata, 'creationTimestamp') ?? '') || 0),
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    mirror: stringAt(annotations, MIRROR_ANNOTATION) !== undefined,
    phase: stringAt(status, 'phase') ?? '',
    nodeName: shareName(stringAt(spec, 'nodeName') || undefined),
    broken,
    owner: share(readOwner(metadata)),
    gated: known === undefined ? readGated(spec) : known.gated,
    written: known === undefined ? readWritten(object) : known.written,
    large: undefined,
  };
}

/** Returns the first of two records if both have the same content, so that the other needs no memory. */
function sameRecord<T extends JsonObject>(one: T, other: T): T {
  return isSameRecord(one, other) ? one : other;
}

function readGated(spec: JsonObject): Gated | undefined {
  const gates = listAt(spec, 'schedulingGates') ?? [];
  if (!gates.some(({ name }) => name === ARCHITECTURE_GATE)) return undefined;
  return { gates, affinity: spec.affinity, nodeSelector: spec.nodeSelector };
}

/** Whether the fields of the pod that was read before are those of this one. Those of a pod that is too large are not there. */
function isSameGeneration(metadata: JsonObject, before: Pod | undefined): before is Pod {
  if (before?.large !== undefined) return false;
  return before?.generation !== undefined && metadata.uid === before.uid && metadata.generation === before.generation;
}

/** Pods of one workload are alike in all but their names. */
const share = createShared({ most: 4 * 1024 * 1024 });

/** Many pods have the same namespace, node, service account or priority class. Apart, so that neither displaces the other. */
const shareName = createShared({ most: 1024 * 1024 });

/** Reads the part of a pod or a template that archaware decides by, from its metadata and its spec. */
export function readTemplate(metadata: JsonObject, spec: JsonObject): PodTemplate {
  return {
    labels: share(stringsAt(metadata, 'labels')),
    statement: share(stringAt(objectAt(metadata, 'annotations'), ARCHITECTURES_ANNOTATION)),
    os: readOs(spec),
    hasRuntimeClass: Boolean(stringAt(spec, 'runtimeClassName')),
    images: share(readImages(spec)),
    tolerations: share(listAt(spec, 'tolerations')),
    priorityClassName: shareName(stringAt(spec, 'priorityClassName') || undefined),
    pullSecrets: share(readPullSecrets(spec)),
    serviceAccountName: shareName(stringAt(spec, 'serviceAccountName') || 'default'),
    asked: share(readAsked(spec)),
  };
}

/**
 * How many pull secrets of a pod are read; the others are ignored. The API server sets no limit, and each name costs a request
 * and memory. Pods name a handful.
 */
export const MOST_PULL_SECRETS = 32;
const LONGEST_NAME = 253;

/**
 * Returns the names in the `imagePullSecrets` of a spec or a service account, without duplicates: at most
 * {@link MOST_PULL_SECRETS}, plus one that marks the limit if there are more. A name that is too long for an object is cut to
 * one character more than allowed, so that it stays invalid.
 */
export function readPullSecrets(spec: JsonObject): string[] {
  const names = new Set<string>();
  for (const secret of listAt(spec, 'imagePullSecrets') ?? []) {
    const name = stringAt(secret, 'name');
    if (name) names.add(cut(name, LONGEST_NAME + 1));
    if (names.size > MOST_PULL_SECRETS) break;
  }
  return [...names];
}

/**
 * How many images of a pod are looked up. The API server accepts thousands in one object, and each costs a lookup. A kubelet
 * runs 110 pods by default, most of them with a handful of containers.
 */
export const MOST_IMAGES = 256;
/**
 * How many characters the names of these images may have together: each of them is in memory several times while it is looked
 * up. Enough for 256 images with a registry of a cloud and a digest in their names.
 */
export const MOST_IMAGE_CHARACTERS = 32 * 1024;
/** No volume can have a longer name (a DNS label). */
const LONGEST_VOLUME = 63;

function readImages(spec: JsonObject): PodImage[] {
  const images = new Map<string, PodImage>();
  let characters = 0;
  for (const named of namedImages(spec)) {
    const image = imageName(named.image ?? '');
    const pullPolicy = named.pullPolicy ?? '';
    const key = `${pullPolicy} ${image}`;
    // A template may have an empty image until something fills it in; the API server rejects it in a pod.
    // An image that is there already is skipped: containers come first, and narrow at least as much as volumes do.
    if (!image || images.has(key)) continue;
    characters += image.length;
    const isSurplus = images.size === MOST_IMAGES || characters > MOST_IMAGE_CHARACTERS;
    const volume = named.volume === undefined ? {} : { volume: cut(named.volume, LONGEST_VOLUME) };
    images.set(key, { image, pullPolicy, ...volume, ...(isSurplus ? { isSurplus } : {}) });
    if (isSurplus) break;
  }
  return [...images.values()];
}

type NamedImage = { readonly [field in 'image' | 'pullPolicy' | 'volume']: string | undefined };

function* namedImages(spec: JsonObject): Generator<NamedImage> {
  for (const field of ['initContainers', 'containers']) {
    for (const container of listAt(spec, field) ?? []) {
      const pullPolicy = stringAt(container, 'imagePullPolicy');
      yield { image: stringAt(container, 'image'), pullPolicy, volume: undefined };
    }
  }
  for (const volume of listAt(spec, 'volumes') ?? []) {
    if (!isObject(volume.image)) continue;
    const { image } = volume;
    const pullPolicy = stringAt(image, 'pullPolicy');
    yield { image: stringAt(image, 'reference'), pullPolicy, volume: stringAt(volume, 'name') ?? '' };
  }
}

/** Returns the owner that controls an object, if it has one. */
export function readOwner(metadata: JsonObject): Owner | undefined {
  const reference = (listAt(metadata, 'ownerReferences') ?? []).find((owner) => owner.controller === true);
  return isObject(reference)
    ? {
        kind: stringAt(reference, 'kind') ?? '',
        apiVersion: stringAt(reference, 'apiVersion') ?? '',
        name: stringAt(reference, 'name') ?? '',
        uid: stringAt(reference, 'uid') ?? '',
      }
    : undefined;
}

/** Returns the pod as it is after archaware's patch. `answer`: the API server's answer, of which only the metadata is read. */
export function podAfter(before: Pod, wanted: readonly Toleration[], answer: JsonObject): Pod {
  const metadata = objectAt(answer, 'metadata');
  const present = before.tolerations ?? [];
  return {
    labels: before.labels,
    statement: before.statement,
    os: before.os,
    hasRuntimeClass: before.hasRuntimeClass,
    images: before.images,
    tolerations: [...present, ...lacking(present, wanted)],
    priorityClassName: before.priorityClassName,
    pullSecrets: before.pullSecrets,
    serviceAccountName: before.serviceAccountName,
    asked: before.asked,
    namespace: before.namespace,
    name: before.name,
    uid: before.uid,
    generation: numberAt(metadata, 'generation'),
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? before.resourceVersion,
    createdAt: before.createdAt,
    deleting: before.deleting,
    mirror: before.mirror,
    phase: before.phase,
    nodeName: before.nodeName,
    broken: before.broken,
    owner: before.owner,
    gated: undefined,
    written: before.written,
    large: before.large,
  };
}
