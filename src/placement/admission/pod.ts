import { isObject, type JsonObject, objectAt } from '../../kit/json.ts';
import { difference, type Operation } from '../../kit/json-patch.ts';
import { VERDICT_LABEL } from '../../names.ts';
import { decide, isOpen, type Knowledge } from '../decide.ts';
import { isSystemNamespace, settingsFor } from '../eligibility.ts';
import { isForOneNode } from '../objects/kinds.ts';
import { readPod } from '../objects/pod.ts';
import { type PlacementIntent, placingFor, usesAffinity, usesTaints } from '../placing.ts';
import { heldNote } from '../reasons.ts';
import type { PlacedPart } from '../refused-parts.ts';
import type { Settings } from '../settings.ts';
import { keyOf, readPodSubject, type Subject, type SubjectNamespace } from '../subject.ts';
import { gated, placed, put } from './record.ts';

/** What admission does with a pod. */
export type AdmissionDecision =
  | { readonly kind: 'unchanged' }
  /** The pod gets what it needs now and is not held. */
  | { readonly kind: 'patched'; readonly patch: readonly Operation[] }
  /** The pod is held by the gate until its images are known. */
  | { readonly kind: 'gated'; readonly patch: readonly Operation[] }
  | { readonly kind: 'rejected'; readonly message: string };

/** What admission knows beside the pod. */
export type AdmissionKnowledge = Omit<Knowledge, 'waitedMs' | 'mayHold'> & {
  /** Whether a leader is there that can release the pod. Only then may a gate be added. */
  readonly mayGate: boolean;
  /** The parts that the API server refuses in pods of this owner, and that are therefore left out. */
  readonly withdrawn: readonly PlacedPart[];
};

/** What is reviewed. */
export type ReviewedObject = {
  /** The object as the API server sent it, with every field. */
  readonly object: JsonObject;
  readonly namespace: SubjectNamespace;
  /** The global settings: a policy may override them. */
  readonly settings: Settings;
};

export type AdmissionInput = AdmissionKnowledge &
  ReviewedObject & {
    /** The namespace in which archaware runs. Its pods are never gated: nobody would be there to release them. */
    readonly ownNamespace: string;
    /** Whether the pod gets a label with what was decided. */
    readonly isLabelled?: boolean;
  };

/** All that may decide about a new pod and about its patch, except what is known beside it. */
export type Admitted = {
  readonly subject: Subject;
  readonly isBound: boolean;
  /** Whether its controller has chosen its node. */
  readonly isPinned: boolean;
  /** Whether it may be gated or rejected. System pods, pods of archaware's own namespace and daemon pods may not. */
  readonly mayBeHeldBack: boolean;
  readonly isLabelled: boolean;
  /** The part of the pod that the patch is made for and depends on, as the API server sent it. */
  readonly sent: JsonObject;
};

/** The node selector labels of pods that belong to the control plane. */
const CONTROL_PLANE = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Reads a new pod. The API server may call again with archaware's first answer in it (`reinvocationPolicy: IfNeeded`). */
export function readAdmitted(input: AdmissionInput): Admitted {
  const { object, namespace, settings: all, ownNamespace, isLabelled = false } = input;
  const pod = readPod(object);
  const spec = objectAt(object, 'spec');
  const settings = settingsFor(all, { namespace, labels: pod.labels });
  const isPinned = isForOneNode(pod.owner, spec);
  return {
    subject: readPodSubject(pod, namespace, settings),
    isBound: pod.nodeName !== undefined,
    isPinned,
    mayBeHeldBack: !isPinned && namespace.name !== ownNamespace && !isOfSystem(spec, namespace, settings),
    isLabelled,
    sent: patchedPart(object, isLabelled),
  };
}

/** Whether a pod with this spec belongs to the system or to the control plane: the webhook neither gates nor rejects it. */
export function isOfSystem(
  spec: JsonObject,
  namespace: Pick<SubjectNamespace, 'name'>,
  settings: Pick<Settings, 'systemNamespaces'>,
): boolean {
  const nodeSelector = objectAt(spec, 'nodeSelector');
  return isSystemNamespace(namespace.name, settings) || CONTROL_PLANE.some((key) => Object.hasOwn(nodeSelector, key));
}

/** Returns a text that is the same only if admission answers the same, by the same knowledge of images. */
export function admissionKey(
  { subject, ...rest }: Admitted,
  { clusterArchitectures, mayGate, withdrawn }: AdmissionKnowledge,
): string {
  return JSON.stringify([keyOf(subject), rest, clusterArchitectures, mayGate, withdrawn]);
}

/** Decides about a new pod. If its images are known, it gets tolerations and affinity, else the gate (KEP-3521, KEP-3838). */
export function admitPod(
  { subject, sent, isBound, isPinned, mayBeHeldBack, isLabelled }: Admitted,
  knowledge: AdmissionKnowledge,
): AdmissionDecision {
  const { withdrawn } = knowledge;
  if (isBound || subject.skipped !== undefined) {
    // Another webhook may have bound or excluded the pod after archaware gated it. The API server rejects a bound pod with a gate.
    return patched(sent, gated(sent, false), 'patched');
  }
  const { settings } = subject;
  const answer = (verdict: 'placed' | 'open' | 'waiting' | 'held', placing: PlacementIntent, isGated = false) => {
    const after = gated(placed(sent, placing, settings.taints.key), isGated);
    const labelled = isLabelled ? put(after, ['metadata', 'labels', VERDICT_LABEL], verdict) : after;
    return patched(sent, labelled, isGated ? 'gated' : 'patched');
  };
  const decision = decide(subject, { ...knowledge, waitedMs: 0, mayHold: mayBeHeldBack && usesAffinity(settings) });
  const mayGate = mayBeHeldBack && knowledge.mayGate && !withdrawn.includes('gate');
  // Without taints and without the gate, nothing keeps the pod.
  const isKept = mayGate || usesTaints(settings);
  switch (decision.kind) {
    case 'place': {
      const placing = placingFor(decision, subject);
      const tolerations = withdrawn.includes('tolerations') ? [] : placing.tolerations;
      // If affinity required another node than its controller has chosen, the pod would stay Pending forever.
      const affinity = isPinned || withdrawn.includes('affinity') ? undefined : placing.affinity;
      return answer(isOpen(decision) ? 'open' : 'placed', { tolerations, affinity });
    }
    case 'hold':
      if (mayBeHeldBack && settings.noCommonArchitecture === 'reject') {
        return { kind: 'rejected', message: heldNote(decision, subject.os, settings.schedulable) };
      }
      // Without a toleration, the taints keep the pod Pending.
      return answer(isKept ? 'held' : 'open', NOTHING, mayGate && usesAffinity(settings));
    case 'wait':
      return answer(isKept ? 'waiting' : 'open', NOTHING, mayGate);
    default:
      return decision satisfies never;
  }
}

const NOTHING: PlacementIntent = { tolerations: [], affinity: undefined };

/** What a patch changes, and what it depends on: a node selector takes the place of affinity. */
const METADATA = new Set(['annotations']);
const LABELLED = new Set(['annotations', 'labels']);
const LABELS = new Set([VERDICT_LABEL]);
const SPEC = new Set(['tolerations', 'affinity', 'schedulingGates', 'nodeSelector']);

/**
 * Returns the part of a pod that a patch is made for. The other fields are most of a pod, and some of them differ between the pods
 * of one template. A value of another type stays as it is, because a patch would replace it.
 */
function patchedPart({ metadata, spec }: JsonObject, isLabelled: boolean): JsonObject {
  return {
    ...(metadata === undefined
      ? {}
      : { metadata: isObject(metadata) ? patchedMetadata(metadata, isLabelled) : metadata }),
    ...(spec === undefined ? {} : { spec: isObject(spec) ? chosen(spec, SPEC) : spec }),
  };
}

/** Of the labels, that with the verdict alone: the others differ between the pods of one template. */
function patchedMetadata(metadata: JsonObject, isLabelled: boolean): JsonObject {
  if (!isLabelled || !isObject(metadata.labels)) return chosen(metadata, isLabelled ? LABELLED : METADATA);
  return chosen({ ...metadata, labels: chosen(metadata.labels, LABELS) }, LABELLED);
}

/** Returns the chosen fields in the order in which they are in the object: a patch names them in the same order. */
function chosen(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const parts: Record<string, unknown> = {};
  for (const name in object) if (names.has(name)) parts[name] = object[name];
  return parts;
}

function patched(before: JsonObject, after: JsonObject, kind: 'patched' | 'gated'): AdmissionDecision {
  const patch = difference(before, after);
  return patch.length === 0 ? { kind: 'unchanged' } : { kind, patch };
}
