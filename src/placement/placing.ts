import { isArchitecture } from '../kit/platform.ts';
import { ARCHITECTURE_LABEL, OS_LABEL } from '../names.ts';
import type { Placement } from './decide.ts';
import { type AffinityIntent, isIn } from './patch/affinity.ts';
import { type Toleration, tolerationsFor } from './patch/tolerations.ts';
import { preferencesFor } from './preference.ts';
import type { Settings } from './settings.ts';
import type { Subject, SubjectSettings } from './subject.ts';

/** The tolerations and the node affinity that a decision calls for. The patch adds only what the pod lacks of them. */
export type PlacementIntent = {
  readonly tolerations: readonly Toleration[];
  readonly affinity: AffinityIntent | undefined;
};

/** Returns what a placement writes, in a few words for the log: `tolerates amd64, arm64; requires kubernetes.io/arch in (amd64)`. */
export function placingText({ tolerations, affinity }: PlacementIntent): string {
  const required = (affinity?.required ?? []).map(({ key, values = [] }) => `${key} in (${values.join(', ')})`);
  const parts = [
    ...(tolerations.length > 0 ? [`tolerates ${tolerations.map(({ value }) => value).join(', ')}`] : []),
    ...(required.length > 0 ? [`requires ${required.join(', ')}`] : []),
  ];
  return parts.join('; ') || 'runs anywhere';
}

/** Whether the mode places pods by tolerations. */
export function usesTaints({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode === 'taints' || mode === 'both';
}

/** Whether the mode places pods by node affinity, which can be written only at admission. `mode`: valid or not. */
export function usesAffinity({ mode }: { readonly mode: unknown }): boolean {
  return mode === 'affinity' || mode === 'both';
}

/** Whether the mode only reports what it decides. Then nothing is written but Events, the Lease and the status. */
export function onlyObserves({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode === 'observe';
}

/**
 * Returns the tolerations for these architectures; empty in a mode without taints. Other names than those of Go are left out: no
 * node has those that Go reserves, and what a kubelet invents is nobody else's business.
 */
export function wantedTolerations(
  settings: Pick<SubjectSettings, 'mode' | 'taints'>,
  architectures: readonly string[],
): Toleration[] {
  const possible = architectures.filter(isArchitecture);
  return usesTaints(settings) ? tolerationsFor(settings.taints, possible) : [];
}

/**
 * Returns the architectures for the node affinity of a DaemonSet's template; empty: none. In other modes than `affinity`, taints keep
 * its pods away.
 */
export function templateRequires(
  settings: Pick<SubjectSettings, 'mode' | 'schedulable'>,
  decision: Pick<Placement, 'architectures' | 'followsCluster'>,
): readonly string[] {
  return settings.mode === 'affinity' ? requiredAmong(decision, settings) : [];
}

/** Affinity cannot be widened later. So a decision that follows the cluster requires only what `architectures.schedulable` says. */
function requiredAmong(
  { architectures, followsCluster }: Pick<Placement, 'architectures' | 'followsCluster'>,
  { schedulable }: Pick<SubjectSettings, 'schedulable'>,
): readonly string[] {
  return [...(followsCluster ? schedulable : architectures)].sort();
}

/** What decides how a placement is written. */
type Placed = Pick<Subject, 'labels' | 'preferred' | 'settings'>;

/** Returns the tolerations and the affinity for a decision. */
export function placingFor(decision: Placement, subject: Placed): PlacementIntent {
  return {
    tolerations: wantedTolerations(subject.settings, decision.architectures),
    affinity: usesAffinity(subject.settings) ? affinityFor(decision, subject) : undefined,
  };
}

function affinityFor(decision: Placement, subject: Placed): AffinityIntent {
  const { labels, settings } = subject;
  const { followsCluster, os } = decision;
  const set = requiredAmong(decision, settings);
  const among = followsCluster && set.length === 0 ? undefined : set;
  return {
    required: [
      ...(set.length > 0 ? [isIn(ARCHITECTURE_LABEL, set)] : []),
      ...(os === undefined ? [] : [isIn(OS_LABEL, [os])]),
      ...settings.matchNodeLabels.flatMap((key) => {
        const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
        return value === undefined ? [] : isIn(key, [value]);
      }),
    ],
    preferred: preferencesFor(subject, among),
  };
}
