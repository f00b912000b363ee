import { isReserved } from '../kit/platform.ts';
import { ARCHITECTURE_LABEL, OS_LABEL } from '../names.ts';
import type { Placement } from './decide.ts';
import type { Namespace } from './eligibility.ts';
import type { PodTemplate } from './objects/pod.ts';
import type { AffinityIntent, Requirement } from './patch/affinity.ts';
import { type Toleration, tolerationsFor } from './patch/tolerations.ts';
import { preferencesFor } from './preference.ts';
import type { Settings } from './settings.ts';

/** What a pod is given so that it goes where a decision lets it: what of it is there already is not added again. */
export type PlacementIntent = {
  readonly tolerations: readonly Toleration[];
  readonly affinity: AffinityIntent | undefined;
};

/** Whether pods are placed by tolerations. */
export function usesTaints({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode !== 'affinity';
}

/** Whether pods are placed by node affinity. */
export function usesAffinity({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode !== 'taints';
}

/** The tolerations for those of these architectures that a node can have, where the mode has any. */
export function wantedTolerations(
  settings: Pick<Settings, 'mode' | 'taints'>,
  architectures: readonly string[],
): Toleration[] {
  const possible = architectures.filter((name) => !isReserved(name));
  return usesTaints(settings) ? tolerationsFor(settings.taints, possible) : [];
}

/** What is decided of a DaemonSet's template where the mode has no taints: it needs nothing, and what it has of ours goes. */
export const NOTHING_NEEDED: Placement = {
  kind: 'place',
  architectures: [],
  basis: 'cluster',
  followsCluster: false,
  os: undefined,
  failed: [],
  unknown: [],
  images: [],
};

/** Renders a decision for a pod, by the settings that apply to it. */
export function placingFor(
  decision: Placement,
  template: Pick<PodTemplate, 'labels'>,
  namespace: Pick<Namespace, 'preferred'>,
  settings: Settings,
): PlacementIntent {
  return {
    tolerations: wantedTolerations(settings, decision.architectures),
    affinity: usesAffinity(settings) ? affinityFor(decision, template, namespace, settings) : undefined,
  };
}

function affinityFor(
  { architectures, followsCluster, os }: Placement,
  template: Pick<PodTemplate, 'labels'>,
  namespace: Pick<Namespace, 'preferred'>,
  settings: Settings,
): AffinityIntent {
  // Affinity cannot be widened: what follows the cluster is required only to be what may be used at all.
  const set = followsCluster ? settings.schedulable : architectures;
  const among = followsCluster && set.length === 0 ? undefined : set;
  return {
    required: [
      ...(set.length > 0 ? [isIn(ARCHITECTURE_LABEL, [...set].sort())] : []),
      ...(os === undefined ? [] : [isIn(OS_LABEL, [os])]),
      ...settings.matchNodeLabels.flatMap((key) => {
        const value = Object.hasOwn(template.labels, key) ? template.labels[key] : undefined;
        return value === undefined ? [] : isIn(key, [value]);
      }),
    ],
    preferred: preferencesFor(template, namespace, settings, among),
  };
}

function isIn(key: string, values: readonly string[]): Requirement {
  return { key, operator: 'In', values };
}
