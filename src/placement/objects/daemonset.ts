import {
  fingerprintOf,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
  stringsAt,
} from '../../kit/json.ts';
import { FIELD_MANAGER, TOLERATIONS_ANNOTATION } from '../../names.ts';
import { type Demands, readDemands } from '../fit.ts';
import { withoutRequired } from '../patch/affinity.ts';
import { type PodTemplate, readTemplate } from './pod.ts';
import { claim, claimable, readRecord, type TemplateRecord } from './template-record.ts';

type FieldsEntry = {
  /** Its place in the list. */
  readonly index: number;
  /** Whether it owns a field of the spec: then the list of tolerations, which archaware wrote last, is archaware's alone. */
  readonly ownsSpec: boolean;
  /** When archaware last wrote to the object, in milliseconds since the epoch by the clock of the API server. Absent: not known. */
  readonly at?: number;
  /** When the status last changed, likewise. */
  readonly statusAt?: number;
};

/** A DaemonSet, reduced to the fields that archaware reads. */
export type DaemonSet = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly hasAnnotations: boolean;
  /** The annotation `archaware.dev/tolerations`, not parsed. */
  readonly recorded: string | undefined;
  /** Archaware's entry in `metadata.managedFields`. Absent if archaware wrote nothing. */
  readonly entry?: FieldsEntry;
  /** Whether a server-side apply set the template's list of tolerations as it is. Absent if not. */
  readonly isListApplied?: boolean;
  /** The template as its author wrote it: without the node affinity that the annotation names. */
  readonly template: PodTemplate;
  /** The affinity of the template, with archaware's. Absent if it has none. */
  readonly affinity?: JsonObject;
  /** A hash of the template as its author wrote it: without the tolerations and the node affinity that the annotation names. */
  readonly authored: string;
  /** `OnDelete` or `RollingUpdate`. */
  readonly updateStrategy: string;
  /** How many nodes should run a daemon pod (`status.desiredNumberScheduled`). */
  readonly desired: number;
  /** How many nodes run a daemon pod as they should (`current`), and how many run one that should not (`misscheduled`). */
  readonly current: number;
  readonly misscheduled: number;
  /** How many nodes run a daemon pod of the newest template, and how many an available one. */
  readonly updated: number;
  readonly available: number;
  /** The nodes that it selects: its node selector and required node affinity. */
  readonly selects: Pick<Demands, 'nodeSelector' | 'terms'>;
  /** Whether the DaemonSet controller has seen the newest generation. */
  readonly observed: boolean;
  /** Whether the rollout is complete: by the status of the newest generation, every daemon pod is up to date and available. */
  readonly rolledOut: boolean;
};

/** Reads a DaemonSet from the API server's object. Never throws. */
export function readDaemonSet(object: JsonObject): DaemonSet {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const template = objectAt(spec, 'template');
  const status = objectAt(object, 'status');
  const generation = numberAt(metadata, 'generation') ?? 0;
  const desired = numberAt(status, 'desiredNumberScheduled') ?? 0;
  const { nodeSelector, terms } = readDemands(objectAt(template, 'spec'));
  const recorded = stringAt(objectAt(metadata, 'annotations'), TOLERATIONS_ANNOTATION);
  const record = readRecord(recorded);
  const labels = stringsAt(metadata, 'labels');
  const entry = readEntry(metadata);
  const isApplied = isListApplied(metadata);
  const { affinity } = objectAt(template, 'spec');
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    generation,
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    labels,
    hasAnnotations: isObject(metadata.annotations),
    recorded,
    ...(entry === undefined ? {} : { entry }),
    ...(isApplied ? { isListApplied: true } : {}),
    template: readTemplate(objectAt(template, 'metadata'), ownSpec(objectAt(template, 'spec'), record), [
      labels,
      // The record names the images once more, and must not make an object too large that was served.
      recorded?.slice(MOST_OF_RECORD),
    ]),
    ...(isObject(affinity) ? { affinity } : {}),
    authored: authoredTemplate(template, record, isApplied),
    updateStrategy: stringAt(objectAt(spec, 'updateStrategy'), 'type') ?? 'RollingUpdate',
    desired,
    current: numberAt(status, 'currentNumberScheduled') ?? 0,
    misscheduled: numberAt(status, 'numberMisscheduled') ?? 0,
    updated: numberAt(status, 'updatedNumberScheduled') ?? 0,
    available: numberAt(status, 'numberAvailable') ?? 0,
    selects: { nodeSelector, terms },
    observed: (numberAt(status, 'observedGeneration') ?? 0) >= generation,
    rolledOut: isRolledOut(status, generation),
  };
}

/** Characters of a record that do not count: archaware writes it. */
const MOST_OF_RECORD = 16 * 1024;

/** Finds archaware's entry. Undefined if there is none. */
function readEntry(metadata: JsonObject): FieldsEntry | undefined {
  const entries = listAt(metadata, 'managedFields') ?? [];
  const index = entries.findIndex(
    ({ manager, operation, subresource }) => manager === FIELD_MANAGER && operation === 'Update' && !subresource,
  );
  const entry = entries[index];
  if (entry === undefined) return undefined;
  const at = newestTime([entry]);
  const statusAt = newestTime(entries.filter(({ subresource }) => subresource === 'status'));
  return {
    ...{ index, ownsSpec: 'f:spec' in fieldsOf(entry) },
    ...(at === undefined ? {} : { at }),
    ...(statusAt === undefined ? {} : { statusAt }),
  };
}

function newestTime(entries: readonly JsonObject[]): number | undefined {
  const times = entries.map((entry) => Date.parse(stringAt(entry, 'time') ?? '')).filter((time) => !Number.isNaN(time));
  return times.length === 0 ? undefined : Math.max(...times);
}

/**
 * Whether a server-side apply set the list of tolerations of the template last. Then the list is what its author's source says.
 * `kubectl rollout undo` is no apply.
 */
function isListApplied(metadata: JsonObject): boolean {
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

function isRolledOut(status: JsonObject, generation: number): boolean {
  const desired = numberAt(status, 'desiredNumberScheduled') ?? 0;
  return (
    (numberAt(status, 'observedGeneration') ?? 0) >= generation &&
    (numberAt(status, 'updatedNumberScheduled') ?? 0) >= desired &&
    (numberAt(status, 'numberAvailable') ?? 0) >= desired
  );
}

/**
 * Returns a hash of a template without archaware's tolerations, by its record. Another hash means that its author has changed it.
 * `kubectl rollout restart` is such a change too: it sets an annotation of the template. A `kubectl rollout undo` that only brings
 * back tolerations of archaware is none. `isApplied`: as {@link DaemonSet.isListApplied}.
 */
export function authoredTemplate(template: JsonObject, record: TemplateRecord, isApplied = false): string {
  const spec = ownSpec(objectAt(template, 'spec'), record);
  const present = listAt(spec, 'tolerations') ?? [];
  const ours = claim(present, claimable(record, isApplied));
  const tolerations = present.filter((toleration) => !ours.has(toleration));
  return fingerprintOf({ metadata: template.metadata, spec: { ...spec, tolerations } });
}

/** Returns the spec of a template without the node affinity that the record names. */
function ownSpec(spec: JsonObject, { requires }: TemplateRecord): JsonObject {
  return requires.length === 0 ? spec : { ...spec, affinity: withoutRequired(spec.affinity, requires) };
}
