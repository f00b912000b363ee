import { cut } from '../../kit/cut.ts';
import { createShared } from '../../kit/fairness/equal-values.ts';
import { weightOf } from '../../kit/fairness/weight.ts';
import { isSame, type JsonObject, listAt, numberAt, objectAt, stringAt, stringsAt } from '../../kit/json.ts';
import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, MIRROR_ANNOTATION } from '../../names.ts';
import { type Demands, readDemands, termsOfAnyNode } from '../fit.ts';
import { type Asked, type PodRuntime, readAsked, readRuntime } from './asked-platform.ts';
import { type BrokenContainer, type PodImage, readBroken, readImages } from './containers.ts';
import { isDaemonSet, isOtherDaemonSet, type Owner, readOwner } from './kinds.ts';
import { type RecordedRequirement, readPodRecord, readWritten, type Written } from './pod-record.ts';
import { type Requests, requestsOf } from './requests.ts';

/** The fields that a pod and a pod template have in common and that archaware decides by. */
export type PodTemplate = {
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation `archaware.dev/architectures`, not parsed. */
  readonly statement: string | undefined;
  readonly runtime: PodRuntime;
  /** Distinct images of `initContainers`, `containers` and image volumes, in this order. */
  readonly images: readonly PodImage[];
  /** The tolerations as the API server sent them, with every field; undefined if the field is absent. */
  readonly tolerations: readonly JsonObject[] | undefined;
  readonly priorityClassName: string | undefined;
  /** As {@link readPullSecrets} returns them. */
  readonly pullSecrets: readonly string[];
  readonly serviceAccountName: string;
  /** The architectures that its node selector and its node affinity ask for; undefined: any. */
  readonly asked: Asked | undefined;
  /** How many bytes the object takes if it is too large to be served; undefined for nearly every one. */
  readonly tooLarge: number | undefined;
};

/** The fields of a gated pod that its release changes or depends on, as the API server sent them. */
export type Gated = {
  /** The whole list. */
  readonly gates: readonly JsonObject[];
  readonly affinity: unknown;
  readonly nodeSelector: unknown;
  /** What admission required of it earlier, before other webhooks changed it. */
  readonly ours: readonly RecordedRequirement[];
};

/** What a pod asks of the labels of its node. */
type Selects = Pick<Demands, 'nodeSelector' | 'terms'>;

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
  /** The containers that do not run now; undefined for nearly every pod. The same list object as long as its content is the same. */
  readonly broken: readonly BrokenContainer[] | undefined;
  readonly owner: Owner | undefined;
  /** Its node selector and required node affinity, but for the node of a daemon pod; undefined: it takes any node. */
  readonly selects: Selects | undefined;
  readonly requests: Requests;
  /** Undefined if the pod does not have archaware's gate. */
  readonly gated: Gated | undefined;
  /** What archaware wrote to the pod for its present images; undefined if nothing. */
  readonly written: Written | undefined;
};

/**
 * Reads a pod from the API server's object. Never throws: a field that is missing or has another type counts as absent. `before`: the same
 * pod as read last. Most events change only the status, so the fields that only a new generation can change are then taken from `before`.
 */
export function readPod(object: JsonObject, before?: Pod): Pod {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  const annotations = objectAt(metadata, 'annotations');
  const broken = readBroken(spec, status, before?.uid === metadata.uid ? before?.broken : undefined);
  const known = isSameGeneration(metadata, before) ? before : undefined;
  const gated = known === undefined ? readGated(object, spec) : known.gated;
  const written = known === undefined ? readWritten(object) : known.written;
  const more = [gated?.gates, gated?.ours, written];
  const template = known ?? readTemplate(metadata, spec, more);
  const labels = known === undefined ? template.labels : same(known.labels, stringsAt(metadata, 'labels'));
  const statement = stringAt(annotations, ARCHITECTURES_ANNOTATION);
  const owner = share(readOwner(metadata));
  // Every field is named: V8 copies an object with so many fields slowly, and this runs twice for each new pod.
  return {
    labels,
    statement: known === undefined ? template.statement : statement,
    runtime: template.runtime,
    images: template.images,
    tolerations: template.tolerations,
    priorityClassName: template.priorityClassName,
    pullSecrets: template.pullSecrets,
    serviceAccountName: template.serviceAccountName,
    asked: template.asked,
    tooLarge:
      labels === template.labels && statement === template.statement
        ? template.tooLarge
        : tooLarge({ ...template, labels, statement }, spec, more),
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
    owner,
    selects: known === undefined ? share(readSelects(spec, owner)) : known.selects,
    requests: known === undefined ? share(requestsOf(spec)) : known.requests,
    gated,
    written,
  };
}

/** Returns what a pod asks of the labels of its node; undefined: nothing. */
function readSelects(spec: JsonObject, owner: Owner | undefined): Selects | undefined {
  if (spec.nodeSelector === undefined && spec.affinity === undefined) return undefined;
  const { nodeSelector, terms: all } = readDemands(spec);
  const terms = isDaemonSet(owner) || isOtherDaemonSet(owner) ? termsOfAnyNode(all) : all;
  return terms === undefined && Object.keys(nodeSelector).length === 0 ? undefined : { nodeSelector, terms };
}

/** Returns the first of two values if both have the same content, so that the other needs no memory. */
function same<T>(one: T, other: T): T {
  return isSame(one, other) ? one : other;
}

function readGated(object: JsonObject, spec: JsonObject): Gated | undefined {
  const gates = listAt(spec, 'schedulingGates') ?? [];
  if (!gates.some(({ name }) => name === ARCHITECTURE_GATE)) return undefined;
  const ours = readPodRecord(object)?.required ?? [];
  return { gates, affinity: spec.affinity, nodeSelector: spec.nodeSelector, ours };
}

/** Whether the fields of the pod that was read before are those of this one. Those of a pod that is too large are not there. */
function isSameGeneration(metadata: JsonObject, before: Pod | undefined): before is Pod {
  if (before?.tooLarge !== undefined) return false;
  return before?.generation !== undefined && metadata.uid === before.uid && metadata.generation === before.generation;
}

/** Pods of one workload are alike in all but their names. */
const share = createShared(4 * 1024 * 1024);

/** Many pods have the same namespace, node, service account or priority class. Apart, so that neither displaces the other. */
const shareName = createShared(1024 * 1024);

/**
 * Reads the part of a pod or a template that archaware decides by, from its metadata and its spec. `more`: what is kept of the object
 * besides.
 */
export function readTemplate(metadata: JsonObject, spec: JsonObject, more: readonly unknown[] = []): PodTemplate {
  const labels = share(stringsAt(metadata, 'labels'));
  const statement = share(stringAt(objectAt(metadata, 'annotations'), ARCHITECTURES_ANNOTATION));
  const images = share(readImages(spec));
  const tolerations = share(listAt(spec, 'tolerations'));
  const pullSecrets = share(readPullSecrets(spec));
  return {
    labels,
    statement,
    runtime: share(readRuntime(spec)),
    images,
    tolerations,
    priorityClassName: shareName(stringAt(spec, 'priorityClassName') || undefined),
    pullSecrets,
    serviceAccountName: shareName(stringAt(spec, 'serviceAccountName') || 'default'),
    asked: share(readAsked(spec)),
    tooLarge: tooLarge({ labels, statement, images, tolerations, pullSecrets }, spec, more),
  };
}

/*
 * The author of a pod decides how large it is, up to what etcd takes (1.5 MB), and every replica keeps every pod. So an object that
 * is too large is not served, and of what it says nothing is kept (docs/decisions/051-what-objects-occupy.md).
 */

/** The most bytes of memory that the images, labels, selectors and tolerations of an object take together. */
export const MOST_BYTES = 16 * 1024;

/** Weighs what the author of an object can make large. Returns about how many bytes of memory it takes if that is too many. */
function tooLarge(
  {
    labels,
    statement,
    images,
    tolerations,
    pullSecrets,
  }: Pick<PodTemplate, 'labels' | 'statement' | 'images' | 'tolerations' | 'pullSecrets'>,
  { nodeSelector, affinity }: JsonObject,
  more: readonly unknown[],
): number | undefined {
  let bytes = 0;
  for (const part of [labels, statement, images, tolerations, pullSecrets, nodeSelector, affinity, ...more]) {
    bytes += weightOf(part);
  }
  return bytes > MOST_BYTES ? bytes : undefined;
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
