import { isSameList, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import { type EventReason, FIELD_MANAGER } from '../../names.ts';
import { type DaemonSet, readDaemonSet, readRecord } from '../../placement/objects/daemonset.ts';
import { readOwner, readPod } from '../../placement/objects/pod.ts';
import { lacking, type Toleration, tolerationsFor } from '../../placement/patch/tolerations.ts';
import { usesAffinity, usesTaints } from '../../placement/placing.ts';
import { PART_TEXTS } from '../../placement/refused-parts.ts';
import { isTakenBack } from '../../placement/rollout/taken-back.ts';
import type { Settings } from '../../placement/settings.ts';
import { recordedNames } from '../../placement/standing.ts';
import { eventTime } from '../event-time.ts';

/** The reasons of Events that are problems, each with what to do, in one line. */
export const TROUBLES = {
  WriteContested:
    'find the other writer (kubectl get -o yaml --show-managed-fields), and leave the object to one of the two',
  WriteRefused:
    'allow the write in the policy or webhook that refuses it (docs/security.md, "Other admission plug-ins")',
  RefusedByPolicy:
    'allow what archaware adds in the policy that refuses it (docs/security.md, "Other admission plug-ins")',
  TaintHeldBack:
    'allow the account of archaware in the policy that refuses the write; or add the tolerations to the source of the DaemonSet; or use placement.mode affinity or taints.manage false (docs/runbooks/taints-held-back.md)',
  RolloutStopped:
    'allow the tolerations in the policy that refuses its pods, then kubectl rollout restart; or label the DaemonSet archaware.dev/ignore=true, if it may lose its pods on nodes with the taint (docs/runbooks/rollout-stopped.md)',
} as const satisfies Partial<Record<EventReason, string>>;

export type TroubleReason = keyof typeof TROUBLES;

/** What an Event of the controller says about an object. Anybody who may create Events in the namespace can have written it. */
export type Claim = {
  readonly kind: string;
  /** Empty for nodes. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly reason: TroubleReason;
  readonly note: string;
  /** When it was last seen, in milliseconds since the epoch. */
  readonly atMs: number;
};

/** A claim that the state of its object confirms. */
export type Trouble = Pick<Claim, 'kind' | 'namespace' | 'name' | 'reason' | 'note'>;

const NOTE_BYTES = 400;
/** How many claims are looked at: of one namespace, so that it hides no others, and in all. */
const MOST = { ofNamespace: 10, inAll: 50 } as const;

function isTroubleReason(reason: string): reason is TroubleReason {
  return Object.hasOwn(TROUBLES, reason);
}

/** Reads an Event. Undefined if it is not the controller's, has no reason of {@link TROUBLES}, or is about an object elsewhere. */
export function readClaim(event: JsonObject): Claim | undefined {
  const reason = stringAt(event, 'reason') ?? '';
  if (stringAt(event, 'reportingController') !== FIELD_MANAGER || !isTroubleReason(reason)) return undefined;
  const regarding = objectAt(event, 'regarding');
  const [kind = '', namespace = '', name = '', uid = ''] = ['kind', 'namespace', 'name', 'uid'].map((field) =>
    stringAt(regarding, field),
  );
  // Events about objects without a namespace are in the namespace default.
  const home = kind === 'Node' && namespace === '' ? 'default' : namespace;
  if (stringAt(objectAt(event, 'metadata'), 'namespace') !== home) return undefined;
  return {
    kind,
    namespace,
    name,
    uid,
    reason,
    note: printable(stringAt(event, 'note') ?? '', NOTE_BYTES),
    atMs: eventTime(event),
  };
}

/** Returns the newest claim of each reason about each object, few of each namespace, the newest first. */
export function newestClaims(claims: readonly Claim[]): Claim[] {
  const byObject = new Map<string, Claim>();
  const ofNamespace = new Map<string, number>();
  for (const claim of [...claims].sort((one, other) => other.atMs - one.atMs)) {
    const key = JSON.stringify([claim.kind, claim.namespace, claim.name, claim.reason]);
    const count = ofNamespace.get(claim.namespace) ?? 0;
    if (byObject.has(key) || (claim.kind !== 'Node' && count >= MOST.ofNamespace)) continue;
    byObject.set(key, claim);
    ofNamespace.set(claim.namespace, count + 1);
  }
  return [...byObject.values()].slice(0, MOST.inAll);
}

/** What a claim is checked against. */
export type Confirming = {
  readonly settings: Settings;
  readonly lacking: ReadonlySet<string>;
  readonly architectures: readonly string[];
};

/**
 * Whether the present state of an object confirms a claim. So an Event of yesterday, or one that a tenant has made up, does not
 * count as a problem. `pods`: those that the object controls.
 */
export function isConfirmed(
  { kind, name, uid, reason, note }: Claim,
  object: JsonObject,
  pods: readonly JsonObject[],
  { settings, lacking: untainted, architectures }: Confirming,
): boolean {
  if (kind === 'Node') return untainted.has(name);
  const metadata = objectAt(object, 'metadata');
  if (stringAt(metadata, 'uid') !== uid || stringAt(metadata, 'deletionTimestamp') !== undefined) return false;
  const wanted = usesTaints(settings) ? tolerationsFor(settings.taints, architectures) : [];
  const isOfAffinity = usesAffinity(settings) && note.includes(PART_TEXTS.affinity);
  if (kind === 'Pod') return lacksPart(object, wanted, isOfAffinity);
  if (kind !== 'DaemonSet') return lacksPods(kind, object) || pods.some((pod) => lacksPart(pod, wanted, isOfAffinity));
  const daemonSet = readDaemonSet(object);
  switch (reason) {
    case 'RolloutStopped':
    case 'RefusedByPolicy':
      // Its old pods run again, but it lacks the tolerations, and holds up others, until its author changes it.
      return !daemonSet.rolledOut || isTakenBack(daemonSet);
    case 'TaintHeldBack':
      return untainted.size > 0 && lacking(daemonSet.template.tolerations ?? [], wanted).length > 0;
    case 'WriteContested':
    case 'WriteRefused':
      return lacks(daemonSet, wanted);
    default:
      return reason satisfies never;
  }
}

/** Whether a template lacks tolerations. The record says which ones its images call for, if it was written for these images. */
function lacks(daemonSet: DaemonSet, wanted: readonly Toleration[]): boolean {
  const { template, recorded } = daemonSet;
  const { tolerations, basis } = readRecord(recorded);
  const isDecided = basis !== undefined && basis.images.length > 0 && isSameList(basis.images, recordedNames(template));
  const isPresent = tolerations.some(({ key, effect }) =>
    wanted.some((one) => one.key === key && one.effect === effect),
  );
  const needed = isDecided && isPresent ? tolerations : wanted;
  return lacking(template.tolerations ?? [], needed).length > 0;
}

/** Whether a pod that has not ended has the gate, or none of archaware's tolerations, or no demand for architectures. */
function lacksPart(object: JsonObject, wanted: readonly Toleration[], isOfAffinity: boolean): boolean {
  const pod = readPod(object);
  if (pod.deleting || pod.phase === 'Succeeded' || pod.phase === 'Failed') return false;
  if (pod.gated !== undefined) return true;
  const lacksAll = wanted.length > 0 && lacking(pod.tolerations ?? [], wanted).length === wanted.length;
  return lacksAll || (isOfAffinity && pod.asked === undefined);
}

function lacksPods(kind: string, object: JsonObject): boolean {
  const [spec, status] = [objectAt(object, 'spec'), objectAt(object, 'status')];
  const numberIn = (fields: JsonObject, field: string, otherwise: number) => {
    const value = fields[field];
    return typeof value === 'number' ? value : otherwise;
  };
  if (kind !== 'Job') return numberIn(status, 'replicas', 0) < numberIn(spec, 'replicas', 1);
  const ended = (listAt(status, 'conditions') ?? []).some(
    ({ type, status: is }) => (type === 'Complete' || type === 'Failed') && is === 'True',
  );
  return !ended && spec.suspend !== true && numberIn(status, 'active', 0) === 0;
}

/** Whether an owner of this uid controls the pod. */
export function isControlledBy(pod: JsonObject, uid: string): boolean {
  return readOwner(objectAt(pod, 'metadata'))?.uid === uid;
}
