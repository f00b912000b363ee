import { matchesAnyGlob } from '../kit/glob.ts';
import { matchesSelector } from '../kit/label-syntax.ts';
import { IGNORE_LABEL } from '../names.ts';
import { hasEnded } from './objects/containers.ts';
import type { DaemonSet } from './objects/daemonset.ts';
import { isDaemonSet } from './objects/kinds.ts';
import type { Namespace } from './objects/namespace.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import type { Policy, Settings } from './settings.ts';

/** What policies match on: the namespace, and the labels of the pod or the template. */
type Matched = {
  readonly namespace: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly labels: Readonly<Record<string, string>>;
};

/** Returns the settings for a pod or a template: those of the first policy that matches, else the global ones (the same object). */
export function settingsFor(settings: Settings, matched: Matched): Settings {
  return settings.policies.find((policy) => matches(policy, matched))?.settings ?? settings;
}

function matches({ namespaces, namespaceSelector, podSelector }: Policy, { namespace, labels }: Matched): boolean {
  return (
    (namespaces === undefined || matchesAnyGlob(namespaces, namespace.name)) &&
    matchesSelector(namespaceSelector, namespace.labels) &&
    matchesSelector(podSelector, labels)
  );
}

type SkipFacts = {
  /** `it has finished`. */
  readonly text: string;
  /** Whether the object is left alone although it needs a node. */
  readonly isLeftAlone: boolean;
  /** The key of the configuration behind the reason; absent: there is none. */
  readonly key?: string;
  /** What ends it, for an object in this namespace; absent: nothing needs to. */
  readonly cure?: (namespace: string) => string;
};

/** The reasons why archaware skips an object, with all that depends on the reason. */
const SKIP_REASONS = {
  terminal: { text: 'it has finished', isLeftAlone: false },
  deleting: { text: 'it is being deleted', isLeftAlone: false },
  mirror: { text: 'it is the mirror of a static pod, which cannot be changed', isLeftAlone: false },
  'daemon-pod': {
    text: 'it is a bound pod of a DaemonSet; archaware decides on the template of the DaemonSet',
    isLeftAlone: false,
  },
  ignored: {
    text: `it is labelled ${IGNORE_LABEL}=true`,
    isLeftAlone: true,
    cure: () => `remove the label ${IGNORE_LABEL}`,
  },
  'namespace-ignored': {
    text: `its namespace is labelled ${IGNORE_LABEL}=true`,
    isLeftAlone: true,
    cure: (namespace) => `remove the label: kubectl label namespace ${namespace} ${IGNORE_LABEL}-`,
  },
  'namespace-excluded': {
    text: 'pods.excludeNamespaces names its namespace',
    isLeftAlone: true,
    key: 'pods.excludeNamespaces',
    cure: (namespace) => `remove ${namespace} from pods.excludeNamespaces`,
  },
  'namespace-not-selected': {
    text: 'pods.namespaceSelector does not match its namespace',
    isLeftAlone: true,
    key: 'pods.namespaceSelector',
    cure: (namespace) => `label namespace ${namespace} so that pods.namespaceSelector matches`,
  },
  'daemonsets-ignored': {
    text: 'pods.daemonSets is ignore',
    isLeftAlone: false,
    key: 'pods.daemonSets',
    cure: () => 'set pods.daemonSets to patch',
  },
  'too-large': { text: 'it is too large to be served', isLeftAlone: true },
} as const satisfies Readonly<Record<string, SkipFacts>>;

/** The reason why archaware skips an object. */
export type SkipReason = keyof typeof SKIP_REASONS;

/** Returns what follows from a reason. */
export function skipFacts(reason: SkipReason): SkipFacts {
  return SKIP_REASONS[reason];
}

/** How long a system pod waits for a lookup that has not failed yet, in milliseconds. */
export const SYSTEM_WAIT_MS = 2_000;

/**
 * Returns why a pod is skipped, or undefined. A bound daemon pod is skipped because its DaemonSet's template is decided instead.
 * That of another API group's DaemonSet is not, because archaware does not serve its template.
 */
export function skipPod(
  pod: Pod,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (pod.deleting) return 'deleting';
  if (hasEnded(pod.phase)) return 'terminal';
  if (pod.mirror) return 'mirror';
  if (isDaemonSet(pod.owner)) {
    if (settings.daemonSets === 'ignore') return 'daemonsets-ignored';
    if (pod.nodeName !== undefined) return 'daemon-pod';
  }
  return skipTemplate(pod, namespace, settings);
}

/** Returns why a pod or a template in this namespace is skipped, or undefined. */
export function skipTemplate(
  template: Pick<PodTemplate, 'labels'> & Partial<Pick<PodTemplate, 'tooLarge'>>,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (template.labels[IGNORE_LABEL] === 'true') return 'ignored';
  if (namespace.labels[IGNORE_LABEL] === 'true') return 'namespace-ignored';
  if (matchesAnyGlob(settings.excludeNamespaces, namespace.name)) return 'namespace-excluded';
  if (!matchesSelector(settings.namespaceSelector, namespace.labels)) return 'namespace-not-selected';
  if (template.tooLarge !== undefined) return 'too-large';
  return undefined;
}

/** Returns why a DaemonSet is skipped, or undefined. Its own labels and its template's labels count. */
export function skipDaemonSet(
  daemonSet: Pick<DaemonSet, 'deleting' | 'labels' | 'template'>,
  namespace: Pick<Namespace, 'name' | 'labels'>,
  settings: Settings,
): SkipReason | undefined {
  if (settings.daemonSets === 'ignore') return 'daemonsets-ignored';
  if (daemonSet.deleting) return 'deleting';
  return skipTemplate(daemonSet, namespace, settings) ?? skipTemplate(daemonSet.template, namespace, settings);
}

/** Whether this is a system pod: the cluster may need it (DNS, network, proxies) before any registry can be reached. */
export function isSystemPod(
  template: Pick<PodTemplate, 'priorityClassName'>,
  namespace: string,
  settings: Settings,
): boolean {
  return template.priorityClassName?.startsWith('system-') === true || isSystemNamespace(namespace, settings);
}

/** Whether the configuration lists the namespace as a system namespace. */
export function isSystemNamespace(namespace: string, settings: Pick<Settings, 'systemNamespaces'>): boolean {
  return matchesAnyGlob(settings.systemNamespaces, namespace);
}
