import { cut } from '../kit/cut.ts';
import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, MIRROR_ANNOTATION } from '../names.ts';
import { isObject, type JsonObject, listAt, numberAt, objectAt, stringAt, stringsAt } from './json.ts';
import { readOs } from './os.ts';
import { type BrokenContainer, readBroken } from './start-error.ts';
import { lacking, type Toleration } from './tolerations.ts';
import { readWritten, type Written } from './written.ts';

/** An image that a container or an image volume names, once for each pull policy. */
export type PodImage = {
  readonly image: string;
  readonly pullPolicy: string;
  /** The name of the volume (`volumes[].image`) that names it; absent where a container does. */
  readonly volume?: string;
  /** The first one after {@link MOST_IMAGES}: neither it nor those after it are asked about. */
  readonly isSurplus?: true;
};

/** What a pod and a pod template have in common, as far as it decides. */
export type PodTemplate = {
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation `archaware.dev/architectures`, unread. */
  readonly statement: string | undefined;
  readonly os: string;
  /** Whether `spec.runtimeClassName` names a RuntimeClass. */
  readonly hasRuntimeClass: boolean;
  /** Distinct images of `initContainers`, `containers` and image volumes, in this order; at most {@link MOST_IMAGES}, and one more where there are more. */
  readonly images: readonly PodImage[];
  /** As the API server sent them, every field kept; undefined where the field is absent. */
  readonly tolerations: readonly JsonObject[] | undefined;
  readonly priorityClassName: string | undefined;
  /** As {@link readPullSecrets} gives them. */
  readonly pullSecrets: readonly string[];
  readonly serviceAccountName: string;
};

/** What may be narrowed of a pod while it holds our gate, as the API server sent it. */
export type Gated = {
  /** The whole list. */
  readonly gates: readonly JsonObject[];
  readonly affinity: unknown;
  readonly nodeSelector: unknown;
};

/** The object that controls a pod (`metadata.ownerReferences` with `controller: true`). */
export type Owner = { readonly kind: string; readonly apiVersion: string; readonly name: string; readonly uid: string };

/** A pod, trimmed to what is read of it. */
export type Pod = PodTemplate & {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Undefined before Kubernetes 1.33, which did not count a pod's generations. */
  readonly generation: number | undefined;
  readonly resourceVersion: string;
  /** `metadata.creationTimestamp` in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly deleting: boolean;
  readonly mirror: boolean;
  readonly phase: string;
  readonly nodeName: string | undefined;
  /** Its containers that do not run now; undefined for nearly every pod. The same list as long as it says the same. */
  readonly broken: readonly BrokenContainer[] | undefined;
  readonly owner: Owner | undefined;
  /** Undefined where it does not hold our gate. */
  readonly gated: Gated | undefined;
  /** What archaware wrote to it for its present images; undefined: nothing. */
  readonly written: Written | undefined;
};

/**
 * Reads a pod of the API server. Never throws: what is missing or of another type counts as absent. `before`: the same pod as
 * it was read last; what only a new generation can change is taken from there, as most events are of its status.
 */
export function readPod(object: JsonObject, before?: Pod): Pod {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  const annotations = objectAt(metadata, 'annotations');
  const broken = readBroken(spec, status, before?.uid === metadata.uid ? before?.broken : undefined);
  if (isSameGeneration(metadata, before)) {
    return {
      ...before,
      labels: stringsAt(metadata, 'labels'),
      statement: stringAt(annotations, ARCHITECTURES_ANNOTATION),
      resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
      deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
      mirror: stringAt(annotations, MIRROR_ANNOTATION) !== undefined,
      phase: stringAt(status, 'phase') ?? '',
      nodeName: stringAt(spec, 'nodeName') || undefined,
      broken,
      owner: readOwner(metadata),
    };
  }
  return {
    ...readTemplate(metadata, spec),
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    generation: numberAt(metadata, 'generation'),
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    createdAt: Date.parse(stringAt(metadata, 'creationTimestamp') ?? '') || 0,
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    mirror: stringAt(annotations, MIRROR_ANNOTATION) !== undefined,
    phase: stringAt(status, 'phase') ?? '',
    nodeName: stringAt(spec, 'nodeName') || undefined,
    broken,
    owner: readOwner(metadata),
    gated: readGated(spec),
    written: readWritten(object),
  };
}

function readGated(spec: JsonObject): Gated | undefined {
  const gates = listAt(spec, 'schedulingGates') ?? [];
  if (!gates.some(({ name }) => name === ARCHITECTURE_GATE)) return undefined;
  return { gates, affinity: spec.affinity, nodeSelector: spec.nodeSelector };
}

function isSameGeneration(metadata: JsonObject, before: Pod | undefined): before is Pod {
  return before?.generation !== undefined && metadata.uid === before.uid && metadata.generation === before.generation;
}

/** Reads the deciding part of a pod or of a template: its metadata and its spec. */
export function readTemplate(metadata: JsonObject, spec: JsonObject): PodTemplate {
  return {
    labels: stringsAt(metadata, 'labels'),
    statement: stringAt(objectAt(metadata, 'annotations'), ARCHITECTURES_ANNOTATION),
    os: readOs(spec),
    hasRuntimeClass: Boolean(stringAt(spec, 'runtimeClassName')),
    images: readImages(spec),
    tolerations: listAt(spec, 'tolerations'),
    priorityClassName: stringAt(spec, 'priorityClassName') || undefined,
    pullSecrets: readPullSecrets(spec),
    serviceAccountName: stringAt(spec, 'serviceAccountName') || 'default',
  };
}

/**
 * The pull secrets of a pod that are read; those after them are passed over. The API server sets no bound, and each
 * name costs a request and memory. Pods name a handful.
 */
export const MOST_PULL_SECRETS = 32;
/** The longest name that an object can have. */
const LONGEST_NAME = 253;

/**
 * The names in the `imagePullSecrets` of a spec or service account, each once: at most {@link MOST_PULL_SECRETS}, and one more where
 * there are more. A name that is too long for an object is cut, so that it is one character too long.
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
 * The images of a pod that are asked about. The API server takes thousands in one object, and each costs a lookup; a kubelet
 * runs 110 pods by default, most of them with a handful of containers.
 */
export const MOST_IMAGES = 256;
/** No image can have a longer name. */
const LONGEST_IMAGE = 800;
/** No volume can have a longer name (a DNS label). */
const LONGEST_VOLUME = 63;

function readImages(spec: JsonObject): PodImage[] {
  const images = new Map<string, PodImage>();
  for (const named of namedImages(spec)) {
    const image = cut(named.image ?? '', LONGEST_IMAGE + 1);
    const pullPolicy = named.pullPolicy ?? '';
    const key = `${pullPolicy} ${image}`;
    // An image may be empty in a template until something fills it in; the API server refuses it in a pod.
    // A container narrows at least as much as a volume of the same image does.
    if (!image || images.has(key)) continue;
    const isSurplus = images.size === MOST_IMAGES;
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

/** The controlling owner of an object's metadata, if it has one. */
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

/** The pod as it is after its patch, which took our gate if it held it, was answered with the metadata of the new version. */
export function podAfter(before: Pod, wanted: readonly Toleration[], answer: JsonObject): Pod {
  const metadata = objectAt(answer, 'metadata');
  const present = before.tolerations ?? [];
  return {
    ...before,
    generation: numberAt(metadata, 'generation'),
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? before.resourceVersion,
    tolerations: [...present, ...lacking(present, wanted)],
    gated: undefined,
  };
}
