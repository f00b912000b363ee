import { isObject, type JsonObject, numberAt, objectAt, parseJson, stringAt, stringsAt } from '../../kit/json.ts';
import { TOLERATIONS_ANNOTATION } from '../../names.ts';
import { isSameToleration, lacking, type Toleration } from '../patch/tolerations.ts';
import { type PodTemplate, readTemplate } from './pod.ts';

/** A DaemonSet, trimmed to what is read of it. */
export type DaemonSet = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly hasAnnotations: boolean;
  /** The annotation `archaware.dev/tolerations`, unread. */
  readonly recorded: string | undefined;
  readonly template: PodTemplate;
  /** `OnDelete` or `RollingUpdate`. */
  readonly updateStrategy: string;
  /** How many nodes should run a daemon pod, as the status says. */
  readonly desired: number;
  /** How many nodes that should run one do, and how many that should not. */
  readonly current: number;
  readonly misscheduled: number;
  /** Whether the DaemonSet controller has seen the newest generation. */
  readonly observed: boolean;
  /** Whether every daemon pod is of the newest template and available, as the status says of the newest generation. */
  readonly settled: boolean;
};

/** What is to become of a template: its whole list of tolerations, and the annotation (undefined: none). */
export type TemplateDecision =
  | { readonly kind: 'settled' }
  | {
      readonly kind: 'set';
      readonly tolerations: readonly JsonObject[];
      readonly recorded: string | undefined;
      /** Whether the template changes, so that the DaemonSet rolls; otherwise only the annotation does. */
      readonly rolls: boolean;
    };

/** Reads a DaemonSet of the API server. Never throws. */
export function readDaemonSet(object: JsonObject): DaemonSet {
  const metadata = objectAt(object, 'metadata');
  const spec = objectAt(object, 'spec');
  const template = objectAt(spec, 'template');
  const generation = numberAt(metadata, 'generation') ?? 0;
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    generation,
    deleting: stringAt(metadata, 'deletionTimestamp') !== undefined,
    labels: stringsAt(metadata, 'labels'),
    hasAnnotations: isObject(metadata.annotations),
    recorded: stringAt(objectAt(metadata, 'annotations'), TOLERATIONS_ANNOTATION),
    template: readTemplate(objectAt(template, 'metadata'), objectAt(template, 'spec')),
    updateStrategy: stringAt(objectAt(spec, 'updateStrategy'), 'type') ?? 'RollingUpdate',
    desired: numberAt(objectAt(object, 'status'), 'desiredNumberScheduled') ?? 0,
    current: numberAt(objectAt(object, 'status'), 'currentNumberScheduled') ?? 0,
    misscheduled: numberAt(objectAt(object, 'status'), 'numberMisscheduled') ?? 0,
    observed: (numberAt(objectAt(object, 'status'), 'observedGeneration') ?? 0) >= generation,
    settled: isSettled(objectAt(object, 'status'), generation),
  };
}

function isSettled(status: JsonObject, generation: number): boolean {
  const desired = numberAt(status, 'desiredNumberScheduled') ?? 0;
  return (
    (numberAt(status, 'observedGeneration') ?? 0) >= generation &&
    (numberAt(status, 'updatedNumberScheduled') ?? 0) >= desired &&
    (numberAt(status, 'numberAvailable') ?? 0) >= desired
  );
}

/** More than we ever write; each is compared with each toleration of a template, and the annotation is anybody's. */
const MOST_RECORDED = 64;

/** For which images, under which settings, the tolerations of a record were decided; no images: they were a guess. */
export type RecordBasis = { readonly images: readonly string[]; readonly settings: string };

/** What the annotation records: archaware's tolerations, and what they were decided on, which older records do not say. */
export type TemplateRecord = { readonly tolerations: readonly Toleration[]; readonly basis: RecordBasis | undefined };

/** Reads the annotation that lists which tolerations are archaware's; what cannot be read counts as none. */
export function readRecord(annotation: string | undefined): TemplateRecord {
  const parsed = annotation === undefined ? undefined : parseJson(annotation);
  if (!isObject(parsed)) return { tolerations: readTolerations(parsed), basis: undefined };
  const { images, settings, tolerations } = parsed;
  const isComplete = Array.isArray(images) && typeof settings === 'string';
  const basis = isComplete ? { images: images.filter((image) => typeof image === 'string'), settings } : undefined;
  return { tolerations: readTolerations(tolerations), basis };
}

/** The tolerations of the annotation alone. */
export function readRecorded(annotation: string | undefined): readonly Toleration[] {
  return readRecord(annotation).tolerations;
}

/** The annotation for a record; undefined for one without tolerations. The policies of the manifests find each toleration in it by its JSON. */
function writeRecord(tolerations: readonly JsonObject[], basis: RecordBasis | undefined): string | undefined {
  if (tolerations.length === 0) return undefined;
  return JSON.stringify(basis === undefined ? tolerations : { ...basis, tolerations });
}

function readTolerations(list: unknown): Toleration[] {
  if (!Array.isArray(list)) return [];
  return list.slice(0, MOST_RECORDED).flatMap((entry: unknown) => {
    if (!isObject(entry)) return [];
    const { key, value, effect } = {
      key: stringAt(entry, 'key'),
      value: stringAt(entry, 'value'),
      effect: stringAt(entry, 'effect'),
    };
    return key && value && effect ? [{ key, operator: 'Equal' as const, value, effect }] : [];
  });
}

/**
 * The template that has exactly the wanted tolerations and its author's own: what of ours is no longer wanted goes, but
 * for those under a taint that nodes still carry (`liveTaints`, as `key:effect`): taking them would take the running
 * daemon pods off those nodes at once. `basis`: what the wanted ones were decided on; default: as recorded.
 */
export function decideTemplate(
  daemonSet: Pick<DaemonSet, 'recorded' | 'template'>,
  wanted: readonly Toleration[],
  liveTaints: ReadonlySet<string>,
  basis?: RecordBasis,
): TemplateDecision {
  const present = daemonSet.template.tolerations ?? [];
  const record = readRecord(daemonSet.recorded);
  const ours = claim(present, record.tolerations);
  const theirs = present.filter((toleration) => !ours.has(toleration));
  const needed = lacking(theirs, wanted);
  const isNeeded = (toleration: JsonObject) => needed.some((entry) => isSameToleration(toleration, entry));
  const isOther = (toleration: JsonObject) =>
    !wanted.some(({ key, effect }) => toleration.key === key && toleration.effect === effect);
  const isLive = (toleration: JsonObject) =>
    isOther(toleration) && liveTaints.has(`${toleration.key}:${toleration.effect}`);
  const kept = [...ours].filter((toleration) => isNeeded(toleration) || isLive(toleration));
  const added = lacking(kept, needed);
  const gone = new Set([...ours].filter((toleration) => !kept.includes(toleration)));
  const tolerations = [...present.filter((toleration) => !gone.has(toleration)), ...added];
  const annotation = writeRecord([...kept, ...added], basis ?? record.basis);
  const rolls = added.length > 0 || tolerations.length !== present.length;
  if (!rolls && annotation === daemonSet.recorded) return { kind: 'settled' };
  return { kind: 'set', tolerations, recorded: annotation, rolls };
}

/** The tolerations that are recorded as ours, one for each entry: a second one like it is its author's. */
function claim(present: readonly JsonObject[], recorded: readonly Toleration[]): ReadonlySet<JsonObject> {
  const unclaimed = [...recorded];
  const keys = new Set<unknown>(recorded.map(({ key }) => key));
  const ours = present.filter((toleration) => {
    if (!keys.has(toleration.key)) return false;
    const index = unclaimed.findIndex((entry) => isSameToleration(toleration, entry));
    return index >= 0 && unclaimed.splice(index, 1).length > 0;
  });
  return new Set(ours);
}
