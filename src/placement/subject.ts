import { sha256 } from '../kit/json.ts';
import { NOE_PREFERRED, PREFERRED } from '../names.ts';
import { isSystemPod, type SkipReason, skipDaemonSet, skipPod, skipTemplate } from './eligibility.ts';
import type { PodRuntime } from './objects/asked-platform.ts';
import type { DaemonSet } from './objects/daemonset.ts';
import type { Namespace } from './objects/namespace.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import { asOurs, type Toleration } from './patch/tolerations.ts';
import { decidingSettings, type Settings, type SubjectSettings, settingsOfImages } from './settings.ts';

/**
 * All that may decide about a pod or a template, except what is known of images and of the cluster: its fields that may decide, and the
 * settings that apply to it. Only this file makes one. Not in it are the uid of the object, the node of a pod and what archaware recorded
 * that it wrote (`Written`): a decision that may change because of these is not final (`placing.ts`).
 */
export type Subject = PodRuntime &
  Pick<PodTemplate, 'images' | 'statement' | 'pullSecrets' | 'asked'> & {
    readonly namespace: string;
    /** Whether the cluster may need it before any registry can be reached. */
    readonly isSystem: boolean;
    /** Why archaware skips it; undefined: archaware decides about it. */
    readonly skipped: SkipReason | undefined;
    /** The labels that decide its node affinity; none for a DaemonSet. */
    readonly labels: Readonly<Record<string, string>>;
    /** The annotation `archaware.dev/preferred` of its namespace, not parsed; undefined for a DaemonSet. */
    readonly preferred: string | undefined;
    /** The architectures that a pod tolerates by tolerations in archaware's form. */
    readonly tolerated: readonly string[];
    /** Whether a pod has archaware's gate. */
    readonly isGated: boolean;
    /**
     * What stands in the key for the fields of a DaemonSet's author: the hash of its template, of which each change counts. Undefined
     * for everything else.
     */
    readonly digest: string | undefined;
    readonly settings: SubjectSettings;
  };

/**
 * Returns the key of a subject: a text of 64 characters that is the same only if all fields are (SHA-256), so alike pods have the same key.
 * It decides whether an event matters, and whether an answer may be given again; {@link evidenceKey} decides whether a record still holds.
 * To compare two subjects (`isSame`) takes less time: pods share the values that are equal.
 */
export function keyOf(subject: Subject): string {
  return hashOf(subject, textOf(subject.settings));
}

/** The fields of a namespace that decide about what is in it. */
export type SubjectNamespace = Pick<Namespace, 'name' | 'labels' | 'preferred'>;

/** Reads what decides about a pod. `settings`: those that apply to it (`settingsFor`). */
export function readPodSubject(pod: Pod, namespace: SubjectNamespace, settings: Settings): Subject {
  return subjectOf(pod, namespace, settings, {
    skipped: skipPod(pod, namespace, settings),
    labels: labelsOf(pod, settings),
    tolerated: toleratedBy(pod, settings),
    isGated: pod.gated !== undefined,
    digest: undefined,
  });
}

/** Returns a pod's subject after a write that removes the gate and adds these tolerations of archaware. */
export function afterWrite(subject: Subject, added: readonly Pick<Toleration, 'value'>[]): Subject {
  return { ...subject, tolerated: [...subject.tolerated, ...added.map(({ value }) => value)], isGated: false };
}

/** Reads what decides about the pods of a template. `settings`: those that apply to it. */
export function readTemplateSubject(template: PodTemplate, namespace: SubjectNamespace, settings: Settings): Subject {
  return subjectOf(template, namespace, settings, {
    skipped: skipTemplate(template, namespace, settings),
    labels: labelsOf(template, settings),
    ...OF_A_TEMPLATE,
    digest: undefined,
  });
}

/** Reads what decides about the template of a DaemonSet, which never gets an affinity. `settings`: those that apply to it. */
export function readDaemonSetSubject(
  daemonSet: Pick<DaemonSet, 'deleting' | 'labels' | 'template' | 'authored'>,
  namespace: Pick<SubjectNamespace, 'name' | 'labels'>,
  settings: Settings,
): Subject {
  return subjectOf(daemonSet.template, { ...namespace, preferred: undefined }, settings, {
    skipped: skipDaemonSet(daemonSet, namespace, settings),
    labels: {},
    ...OF_A_TEMPLATE,
    digest: daemonSet.authored,
  });
}

const OF_A_TEMPLATE = { tolerated: [], isGated: false } as const;

function once<Key extends WeakKey, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, Value>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}

/** The settings of subjects, once for each object of settings; and as text, once for each of those. */
const deciding = once(decidingSettings);
const textOf = once((settings: SubjectSettings) => JSON.stringify(settings));

type Own = Pick<Subject, 'skipped' | 'labels' | 'tolerated' | 'isGated' | 'digest'>;

function subjectOf(template: PodTemplate, namespace: SubjectNamespace, settings: Settings, own: Own): Subject {
  // Every field is named: this runs for each event of a pod.
  return {
    namespace: namespace.name,
    images: template.images,
    os: template.runtime.os,
    hasRuntimeClass: template.runtime.hasRuntimeClass,
    statement: template.statement,
    pullSecrets: template.pullSecrets,
    isSystem: isSystemPod(template, namespace.name, settings),
    skipped: own.skipped,
    asked: template.asked,
    labels: own.labels,
    preferred: namespace.preferred,
    tolerated: own.tolerated,
    isGated: own.isGated,
    digest: own.digest,
    settings: deciding(settings),
  };
}

function labelsOf({ labels }: PodTemplate, { matchNodeLabels }: Settings): PodTemplate['labels'] {
  const names = [...matchNodeLabels, PREFERRED, NOE_PREFERRED].filter((name) => Object.hasOwn(labels, name));
  return Object.fromEntries(names.map((name) => [name, labels[name] ?? '']));
}

function toleratedBy({ tolerations }: Pod, settings: Settings): readonly string[] {
  const { taints } = settings;
  // Nearly every toleration has another key, and this runs for each event of a pod.
  return (tolerations ?? []).flatMap((each) => (each.key === taints.key ? (asOurs(each, taints)?.value ?? []) : []));
}

/** Empty values for the fields that a digest stands for. */
const NOTHING_OF_THE_AUTHOR = {
  images: [],
  statement: undefined,
  pullSecrets: [],
  asked: undefined,
  labels: {},
  tolerated: [],
} as const;

/** `settings`: the settings as text, which is made once for all subjects. */
function hashOf(subject: Subject, settings: string): string {
  const { images, statement, pullSecrets, asked, labels, tolerated } =
    subject.digest === undefined ? subject : NOTHING_OF_THE_AUTHOR;
  const { namespace, os, hasRuntimeClass, isSystem, skipped, preferred, isGated, digest } = subject;
  const own = {
    ...{ namespace, images, os, hasRuntimeClass, statement, pullSecrets, isSystem, skipped },
    ...{ asked, labels, preferred, tolerated, isGated, digest },
  };
  return sha256(JSON.stringify(own), settings);
}

/**
 * Returns a key of all that a decision on known images depends on. A record that was written under one taint key is a proof under
 * another one too.
 */
export function evidenceKey(subject: Subject): string {
  return hashOf({ ...subject, isSystem: false }, JSON.stringify(settingsOfImages(subject.settings)));
}
