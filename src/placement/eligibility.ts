import { matchesAnyGlob } from '../kit/glob.ts';
import { type JsonObject, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import { matchesSelector } from '../kit/selector.ts';
import { IGNORE_LABEL, PREFERRED } from '../names.ts';
import type { DaemonSet } from './objects/daemonset.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import type { Settings } from './settings.ts';

/** Why an object is left alone. */
export type SkipReason =
  | 'terminal'
  | 'deleting'
  | 'mirror'
  | 'daemon-pod'
  | 'ignored'
  | 'namespace-ignored'
  | 'namespace-excluded'
  | 'namespace-not-selected'
  | 'daemonsets-ignored';

/** A namespace, trimmed to what is read of it. */
export type Namespace = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation `archaware.dev/preferred`, unread. */
  readonly preferred: string | undefined;
};

/** Reads a namespace of the API server. Never throws. */
export function readNamespace(object: JsonObject): Namespace {
  const metadata = objectAt(object, 'metadata');
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    labels: stringsAt(metadata, 'labels'),
    preferred: stringAt(objectAt(metadata, 'annotations'), PREFERRED),
  };
}

/** How long a pod that the cluster itself may need waits for a look-up that has not failed yet, in milliseconds. */
export const SYSTEM_WAIT_MS = 2_000;

/** Why a pod is left alone, or undefined. A bound daemon pod is decided by its DaemonSet's template. */
export function skipPod(
  pod: Pod,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (pod.deleting) return 'deleting';
  if (pod.phase === 'Succeeded' || pod.phase === 'Failed') return 'terminal';
  if (pod.mirror) return 'mirror';
  if (pod.owner?.kind === 'DaemonSet') {
    if (settings.daemonSets === 'ignore') return 'daemonsets-ignored';
    if (pod.nodeName !== undefined) return 'daemon-pod';
  }
  return skipTemplate(pod, namespace, settings);
}

/** Why a pod or a template in this namespace is left alone, or undefined. */
export function skipTemplate(
  template: Pick<PodTemplate, 'labels'>,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (template.labels[IGNORE_LABEL] === 'true') return 'ignored';
  if (namespace.labels[IGNORE_LABEL] === 'true') return 'namespace-ignored';
  if (matchesAnyGlob(settings.excludeNamespaces, namespace.name)) return 'namespace-excluded';
  if (!matchesSelector(settings.namespaceSelector, namespace.labels)) return 'namespace-not-selected';
  return undefined;
}

/** Why a DaemonSet is left alone, or undefined: its own labels count, and its template's. */
export function skipDaemonSet(
  daemonSet: Pick<DaemonSet, 'deleting' | 'labels' | 'template'>,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (settings.daemonSets === 'ignore') return 'daemonsets-ignored';
  if (daemonSet.deleting) return 'deleting';
  return skipTemplate(daemonSet, namespace, settings) ?? skipTemplate(daemonSet.template, namespace, settings);
}

/** Whether the cluster itself may need this pod before any registry can be reached: DNS, the network, proxies. */
export function isSystemPod(
  template: Pick<PodTemplate, 'priorityClassName'>,
  namespace: string,
  settings: Settings,
): boolean {
  return template.priorityClassName?.startsWith('system-') === true || isSystemNamespace(namespace, settings);
}

/** Whether `systemNamespaces` names it. */
export function isSystemNamespace(namespace: string, settings: Pick<Settings, 'systemNamespaces'>): boolean {
  return matchesAnyGlob(settings.systemNamespaces, namespace);
}
