import { isObject, type JsonObject, parseJson } from '../../kit/json.ts';
import { isLabelKey, isReservedKey } from '../../kit/label-syntax.ts';
import { isArchitecture, isArchitectureName } from '../../kit/platform.ts';
import { ARCHITECTURE_LABELS } from '../../names.ts';
import type { Taint } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import { type Node, nodeArchitecture } from './node.ts';

/**
 * The taints and labels that archaware set on a node. The annotation records them as JSON:
 * `{"taints":["key=value:effect"],"labels":["domain/name"]}`.
 */
export type Managed = { readonly taints: readonly Taint[]; readonly labels: readonly string[] };

/** Returns what archaware has set on a node, in a few words for the log. */
export function managedText({ taints, labels }: Managed): string {
  return [...taints.map(taintText), ...labels.map((label) => `label ${label}`)].join(', ') || 'nothing of archaware';
}

/** Returns a taint as kubectl writes it: `key=value:effect`. */
export function taintText({ key, value, effect }: Taint): string {
  return `${key}=${value}:${effect}`;
}

/**
 * Parses the annotation; invalid entries are left out. So are taints and labels that archaware never sets: the kubelet of a node
 * can write this annotation, and must not be able to make archaware remove what the kubelet itself may not change.
 */
export function readManaged(annotation: string | undefined): Managed {
  const parsed = annotation === undefined ? undefined : parseJson(annotation);
  const list = (field: 'taints' | 'labels'): unknown[] => {
    const items = isObject(parsed) ? parsed[field] : undefined;
    return Array.isArray(items) ? items : [];
  };
  return {
    taints: list('taints').flatMap((text) => readTaintText(text) ?? []),
    labels: list('labels').filter(
      (label): label is string =>
        typeof label === 'string' && label.includes('/') && isLabelKey(label) && !isReservedKey(label),
    ),
  };
}

function readTaintText(text: unknown): Taint | undefined {
  const parts = typeof text === 'string' ? /^([^=:]+)=([^=:]*):([A-Za-z]+)$/.exec(text) : null;
  const taint = parts && { key: parts[1] ?? '', value: parts[2] ?? '', effect: parts[3] ?? '' };
  const isValid = taint && isLabelKey(taint.key) && isArchitectureName(taint.value) && isOurEffect(taint.effect);
  return isValid ? taint : undefined;
}

function isOurEffect(effect: string): boolean {
  return effect === 'NoSchedule' || effect === 'PreferNoSchedule';
}

/**
 * Whether a taint or a toleration that a record lists has the form of archaware's under any key: a key that was configured earlier
 * is not known any more. So the value must be an architecture, and of the keys that belong to Kubernetes and to providers, only
 * `kubernetes.io/arch` can be meant. The policies of the manifests let archaware remove the same.
 */
export function hasOurForm({ key, value, effect }: Taint): boolean {
  return isArchitecture(value) && isOurEffect(effect) && (ARCHITECTURE_LABELS.includes(key) || !isReservedKey(key));
}

/** Returns the annotation's text; undefined if there is nothing to record. */
export function writeManaged({ taints, labels }: Managed): string | undefined {
  if (taints.length === 0 && labels.length === 0) return undefined;
  return JSON.stringify({
    ...(taints.length === 0 ? {} : { taints: taints.map(taintText) }),
    ...(labels.length === 0 ? {} : { labels }),
  });
}

/**
 * Whether a taint of a node is archaware's: the annotation records it, or it has the configured key and effect. Keys in the
 * reserved domains belong to Kubernetes and to providers (GKE taints Arm nodes `kubernetes.io/arch=arm64`), so for them only the
 * annotation counts. Under the configured key, the recorded value may be a name that Go does not have.
 */
export function isOurTaint(
  taint: JsonObject,
  managed: Pick<Managed, 'taints'>,
  settings: Pick<Settings['taints'], 'key' | 'effect'>,
): boolean {
  if (isRecorded(taint, managed)) return true;
  if (taint.key !== settings.key || taint.effect !== settings.effect) return false;
  return !isReservedKey(settings.key) || managed.taints.some((entry) => isSameTaint(taint, entry));
}

/** Whether a node has a taint that its annotation records as archaware's, also one for a name that Go does not have. */
export function carriesOurTaint({ managed, taints = [] }: Pick<Node, 'managed' | 'taints'>): boolean {
  if (managed === undefined || taints.length === 0) return false;
  const recorded = readManaged(managed);
  return taints.some((taint) => recorded.taints.some((entry) => isSameTaint(taint, entry)));
}

/** Whether the annotation records this taint, which has archaware's form. The record alone proves nothing. */
export function isRecorded(taint: JsonObject, managed: Pick<Managed, 'taints'>): boolean {
  return managed.taints.some((entry) => hasOurForm(entry) && isSameTaint(taint, entry));
}

function isSameTaint(taint: JsonObject, { key, value, effect }: Taint): boolean {
  return taint.key === key && taint.effect === effect && taint.value === value;
}

/**
 * Returns the nodes that carry a taint of archaware which this configuration does not manage. Nobody removes it, and in the modes
 * `affinity` and `observe` new pods stay Pending because of it. `managesNodes`: whether the node controller runs.
 *
 * A taint counts as archaware's if the node's annotation records it. A taint with the configured key that is not recorded (somebody deleted
 * the annotation) counts if its value is the node's architecture, but not with `taints.manage: false`: then that key is the provider's.
 */
export function nodesWithUnmanagedTaints(
  nodes: Iterable<Node>,
  settings: Pick<Settings, 'mode' | 'taints'>,
  managesNodes: boolean,
): Node[] {
  return [...nodes].filter((node) => hasUnmanagedTaint(node, settings, managesNodes));
}

function hasUnmanagedTaint(node: Node, settings: Pick<Settings, 'mode' | 'taints'>, managesNodes: boolean): boolean {
  if (node.deleting || node.taints === undefined || (managesNodes && settings.taints.manage)) return false;
  const managed = readManaged(node.managed);
  const { key, effect, manage } = settings.taints;
  const goesByKey = (manage || settings.mode === 'affinity') && !isReservedKey(key);
  return node.taints.some((taint) => {
    const isByKey =
      goesByKey && taint.key === key && taint.effect === effect && (taint.value ?? '') === nodeArchitecture(node);
    return isRecorded(taint, managed) ? !managesNodes : isByKey;
  });
}
