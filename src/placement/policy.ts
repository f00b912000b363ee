import { matchesAnyGlob } from '../kit/glob.ts';
import { matchesSelector } from '../kit/selector.ts';
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
