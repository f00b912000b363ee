import { isObject, type JsonObject, listAt, objectAt } from '../../kit/json.ts';
import { difference, type Operation } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';
import { decide, type Knowledge } from '../decide.ts';
import { isSystemNamespace } from '../eligibility.ts';
import { isForOneNode } from '../objects/kinds.ts';
import type { Namespace } from '../objects/namespace.ts';
import { type Pod, readPod } from '../objects/pod.ts';
import { withAffinity } from '../patch/affinity.ts';
import { lacking } from '../patch/tolerations.ts';
import { type PlacementIntent, placingFor, usesAffinity } from '../placing.ts';
import { settingsFor } from '../policy.ts';
import { noCommonArchitectureNote } from '../reasons.ts';
import type { PlacedPart } from '../refused-parts.ts';
import type { Settings } from '../settings.ts';
import { readPodSubject } from '../subject.ts';
import { asAuthored, put, recordOf, type Seal, ungated, withRecord } from './record.ts';

/** What admission does with a pod. */
export type AdmissionDecision =
  | { readonly kind: 'unchanged' }
  /** The pod gets what it needs now and is not held. */
  | { readonly kind: 'patched'; readonly patch: readonly Operation[] }
  /** The pod is held by the gate until its images are known. */
  | { readonly kind: 'gated'; readonly patch: readonly Operation[] }
  | { readonly kind: 'rejected'; readonly message: string };

export type AdmissionInput = Omit<Knowledge, 'waitedMs'> & {
  /** The pod as the API server sent it, with every field. */
  readonly object: JsonObject;
  readonly namespace: Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The global settings; `admitPod` looks for a policy. */
  readonly settings: Settings;
  /** Whether a leader is there that can release the pod. Only then may a gate be added. */
  readonly mayGate: boolean;
  /** The namespace in which archaware runs. Its pods are never gated: nobody would be there to release them. */
  readonly ownNamespace: string;
  /** The parts that the API server refuses in pods of this owner, and that are therefore left out. */
  readonly withdrawn: readonly PlacedPart[];
  /** Signs the record on the pod, and recognises archaware's own records. */
  readonly seal: Seal;
};

/** The node selector labels of pods that belong to the control plane. */
const CONTROL_PLANE = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/**
 * Decides about a new pod. If its images are known, it gets tolerations and affinity, else the gate (KEP-3521, KEP-3838). The API
 * server may call again with archaware's first answer in the pod (`reinvocationPolicy: IfNeeded`). That answer is taken out
 * first, so that it does not look like a wish of the author.
 */
export function admitPod(input: AdmissionInput): AdmissionDecision {
  const { object, namespace, ownNamespace, seal, withdrawn } = input;
  const wished = asAuthored(object, input.settings, namespace.name, seal);
  const pod = readPod(wished);
  const settings = settingsFor(input.settings, { namespace, labels: pod.labels });
  const subject = readPodSubject(pod, namespace, settings);
  if (pod.nodeName !== undefined || subject.skipped !== undefined) {
    // Another webhook may have bound or excluded the pod after archaware gated it. The API server rejects a bound pod with a gate.
    return patched(object, wished, ungated(object));
  }
  const decision = decide(subject, { ...input, waitedMs: 0 });
  const isHeldBack = mayBeHeldBack(pod, wished, namespace.name, ownNamespace, settings);
  const mayGate = input.mayGate && !withdrawn.includes('gate');
  switch (decision.kind) {
    case 'place': {
      const isPinned = isForOneNode(pod.owner, objectAt(wished, 'spec'));
      const placing = placingFor(decision, subject);
      // Its controller has chosen the node. If affinity required another one, the pod would stay Pending forever.
      const given = withoutParts(placing, isPinned ? [...withdrawn, 'affinity'] : withdrawn);
      return patched(object, wished, placed(wished, given, namespace.name, seal));
    }
    case 'hold':
      if (isHeldBack && settings.noCommonArchitecture === 'reject') {
        return { kind: 'rejected', message: noCommonArchitectureNote(decision.images, pod.os, settings.schedulable) };
      }
      // Without a toleration, the taints keep the pod Pending.
      return isHeldBack && mayGate && usesAffinity(settings) ? gated(object, wished) : patched(object, wished, wished);
    case 'wait':
      return isHeldBack && mayGate ? gated(object, wished) : patched(object, wished, wished);
    default:
      return decision satisfies never;
  }
}

/** Returns an intent without some of its parts. */
function withoutParts({ tolerations, affinity }: PlacementIntent, parts: readonly PlacedPart[]): PlacementIntent {
  return {
    tolerations: parts.includes('tolerations') ? [] : tolerations,
    affinity: parts.includes('affinity') ? undefined : affinity,
  };
}

/** Whether a pod may be gated or rejected. System pods, pods of archaware's own namespace and daemon pods may not. */
function mayBeHeldBack(
  pod: Pod,
  object: JsonObject,
  namespace: string,
  ownNamespace: string,
  settings: Settings,
): boolean {
  const selector = objectAt(objectAt(object, 'spec'), 'nodeSelector');
  return (
    !isForOneNode(pod.owner, objectAt(object, 'spec')) &&
    namespace !== ownNamespace &&
    !isSystemNamespace(namespace, settings) &&
    !CONTROL_PLANE.some((key) => Object.hasOwn(selector, key))
  );
}

/** Returns the pod with the tolerations and the affinity of an intent, and the record of what was added. */
function placed(pod: JsonObject, placing: PlacementIntent, namespace: string, seal: Seal): JsonObject {
  const spec = objectAt(pod, 'spec');
  const present = listAt(spec, 'tolerations') ?? [];
  const missing = lacking(present, placing.tolerations);
  const tolerating = missing.length === 0 ? pod : put(pod, ['spec', 'tolerations'], [...present, ...missing]);
  const affinity = placing.affinity === undefined ? undefined : withAffinity(spec, placing.affinity);
  const after = affinity === undefined ? tolerating : put(tolerating, ['spec', 'affinity'], affinity);
  const record = recordOf(pod, after, placing);
  return record === undefined ? after : withRecord(after, record, namespace, seal);
}

function patched(before: JsonObject, wished: JsonObject, after: JsonObject): AdmissionDecision {
  const patch = patchBetween(before, wished, after);
  return patch.length === 0 ? { kind: 'unchanged' } : { kind: 'patched', patch };
}

function gated(before: JsonObject, wished: JsonObject): AdmissionDecision {
  const gates = listAt(objectAt(wished, 'spec'), 'schedulingGates') ?? [];
  const patch = patchBetween(
    before,
    wished,
    put(wished, ['spec', 'schedulingGates'], [...gates, { name: ARCHITECTURE_GATE }]),
  );
  return patch.length === 0 ? { kind: 'unchanged' } : { kind: 'gated', patch };
}

/** Returns the patch; empty if only the order differs: another webhook may have appended entries of its own after archaware's. */
function patchBetween(before: JsonObject, wished: JsonObject, after: JsonObject): Operation[] {
  const patch = difference(before, after);
  const isCalledAgain = wished !== before;
  return patch.length > 0 && isCalledAgain && isReordered(writable(before), writable(after)) ? [] : patch;
}

/** Returns the fields that archaware writes. */
function writable(pod: JsonObject): JsonObject {
  const { tolerations, affinity, schedulingGates } = objectAt(pod, 'spec');
  const { annotations } = objectAt(pod, 'metadata');
  return { tolerations, affinity, schedulingGates, annotations };
}

function isReordered(before: JsonObject, after: JsonObject): boolean {
  // Texts of different lengths cannot be the same in another order. This check avoids sorting lists that may be huge.
  const isAsLong = JSON.stringify(before).length === JSON.stringify(after).length;
  return isAsLong && sortedText(before) === sortedText(after);
}

/** Returns a value as a text that does not depend on the order of items or fields. */
function sortedText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedText).sort().join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? '';
  const entries = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${sortedText(item)}`);
  return `{${entries.sort().join()}}`;
}
