import { isObject, type JsonObject, parseJson } from '../../kit/json.ts';
import type { Taint } from '../patch/tolerations.ts';
import type { Settings } from '../settings.ts';
import { isLabelKey, isReservedKey } from './label-names.ts';
import type { Node } from './node.ts';

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
 * Parses the annotation; invalid entries are left out. So are labels that archaware never sets: somebody who can write the
 * annotation must not be able to make archaware remove `kubernetes.io/` labels.
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
  return parts ? { key: parts[1] ?? '', value: parts[2] ?? '', effect: parts[3] ?? '' } : undefined;
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
 * annotation counts.
 */
export function isOurTaint(
  taint: JsonObject,
  managed: Pick<Managed, 'taints'>,
  settings: Pick<Settings['taints'], 'key' | 'effect'>,
): boolean {
  if (isRecorded(taint, managed)) return true;
  return taint.key === settings.key && taint.effect === settings.effect && !isReservedKey(settings.key);
}

/** Whether a node has a taint that its annotation records as archaware's. */
export function carriesOurTaint({ managed, taints = [] }: Pick<Node, 'managed' | 'taints'>): boolean {
  if (managed === undefined || taints.length === 0) return false;
  const recorded = readManaged(managed);
  return taints.some((taint) => isRecorded(taint, recorded));
}

export function isRecorded(taint: JsonObject, managed: Pick<Managed, 'taints'>): boolean {
  return managed.taints.some(({ key, effect }) => taint.key === key && taint.effect === effect);
}
