import { isObject, type JsonObject, listAt, objectAt } from '../../kit/json.ts';
import { difference, type Operation } from '../../kit/json-patch.ts';
import { ARCHITECTURE_GATE } from '../../names.ts';
import { type DecisionInput, decide } from '../decide.ts';
import { isSystemNamespace, type Namespace, skipPod } from '../eligibility.ts';
import { type Pod, readPod } from '../objects/pod.ts';
import { withAffinity } from '../patch/affinity.ts';
import { lacking } from '../patch/tolerations.ts';
import { type PlacementIntent, placingFor, usesAffinity } from '../placing.ts';
import { settingsFor } from '../policy.ts';
import { noCommonArchitectureNote } from '../reasons.ts';
import type { Settings } from '../settings.ts';
import { asAuthored, put, recordOf, type Seal, ungated, withRecord } from './record.ts';

/** What becomes of an object at admission. */
export type AdmissionDecision =
  | { readonly kind: 'unchanged' }
  /** Given what it needs, once and for all. */
  | { readonly kind: 'patched'; readonly patch: readonly Operation[] }
  /** Held by the gate until its images are known. */
  | { readonly kind: 'gated'; readonly patch: readonly Operation[] }
  | { readonly kind: 'rejected'; readonly message: string };

export type AdmissionInput = Pick<DecisionInput, 'clusterArchitectures' | 'namesOf' | 'answerOf'> & {
  /** The pod as the API server sent it, every field kept. */
  readonly object: JsonObject;
  readonly namespace: Pick<Namespace, 'name' | 'labels' | 'preferred'>;
  /** The global ones; a policy's are found here. */
  readonly settings: Settings;
  /** Whether somebody is there to release it: a gate is added only then. */
  readonly mayGate: boolean;
  /** Where we run: never gated, as nobody would be there to release us. */
  readonly ownNamespace: string;
  /** Signs what is recorded on the pod, and tells archaware's records from others. */
  readonly seal: Seal;
};

/** Node selectors of pods that the control plane is made of. */
const CONTROL_PLANE = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/**
 * What a new pod becomes: what its decision gives it where its images are known, else the gate (KEP-3521, KEP-3838). Called
 * again with its own first answer (`reinvocationPolicy: IfNeeded`), it takes that for none of the user's wishes.
 */
export function admitPod(input: AdmissionInput): AdmissionDecision {
  const { object, namespace, ownNamespace, seal } = input;
  const wished = asAuthored(object, input.settings, namespace.name, seal);
  const pod = readPod(wished);
  const settings = settingsFor(input.settings, { namespace, labels: pod.labels });
  if (pod.nodeName !== undefined || skipPod(pod, namespace, settings) !== undefined) {
    // Another webhook may have bound or excluded it since we gated it: a bound pod that is gated would be refused.
    return patched(object, wished, ungated(object));
  }
  const decision = decide({ ...input, template: pod, namespace: namespace.name, settings, waitedMs: 0 });
  const isHeldBack = mayBeHeldBack(pod, wished, namespace.name, ownNamespace, settings);
  switch (decision.kind) {
    case 'place': {
      const isOfDaemonSet = pod.owner?.kind === 'DaemonSet';
      const placing = placingFor(decision, pod, namespace, settings);
      // Its controller has chosen the node: to require another would hold it for ever.
      const given = isOfDaemonSet ? { ...placing, affinity: undefined } : placing;
      return patched(object, wished, placed(wished, given, namespace.name, seal));
    }
    case 'hold':
      if (isHeldBack && settings.noCommonArchitecture === 'reject') {
        return { kind: 'rejected', message: noCommonArchitectureNote(decision.images, pod.os, settings.schedulable) };
      }
      // Without a toleration it is held by the taints.
      return isHeldBack && input.mayGate && usesAffinity(settings)
        ? gated(object, wished)
        : patched(object, wished, wished);
    case 'wait':
      return isHeldBack && input.mayGate ? gated(object, wished) : patched(object, wished, wished);
    default:
      return decision satisfies never;
  }
}

/** Whether a pod may be gated or refused: not what the cluster or we ourselves may need first, nor a daemon pod. */
function mayBeHeldBack(
  pod: Pod,
  object: JsonObject,
  namespace: string,
  ownNamespace: string,
  settings: Settings,
): boolean {
  const selector = objectAt(objectAt(object, 'spec'), 'nodeSelector');
  return (
    pod.owner?.kind !== 'DaemonSet' &&
    namespace !== ownNamespace &&
    !isSystemNamespace(namespace, settings) &&
    !CONTROL_PLANE.some((key) => Object.hasOwn(selector, key))
  );
}

/** The pod with what a placing gives it, and the record of it. */
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

/** Empty also where only the order differs: another webhook may have put something of its own behind ours. */
function patchBetween(before: JsonObject, wished: JsonObject, after: JsonObject): Operation[] {
  const patch = difference(before, after);
  const isCalledAgain = wished !== before;
  return patch.length > 0 && isCalledAgain && isReordered(writable(before), writable(after)) ? [] : patch;
}

/** The fields that we write. */
function writable(pod: JsonObject): JsonObject {
  const { tolerations, affinity, schedulingGates } = objectAt(pod, 'spec');
  const { annotations } = objectAt(pod, 'metadata');
  return { tolerations, affinity, schedulingGates, annotations };
}

function isReordered(before: JsonObject, after: JsonObject): boolean {
  // What is longer or shorter is no other order: sorting lists that may be huge takes a while.
  const isAsLong = JSON.stringify(before).length === JSON.stringify(after).length;
  return isAsLong && sortedText(before) === sortedText(after);
}

/** A value as a text that does not depend on any order. */
function sortedText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedText).sort().join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? '';
  const entries = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${sortedText(item)}`);
  return `{${entries.sort().join()}}`;
}
