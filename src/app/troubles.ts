import type { EventReason } from '../names.ts';

/** The reasons of Events that are problems, each with what to do, in one line. */
export const TROUBLES = {
  WriteContested:
    'find the other writer (kubectl get -o yaml --show-managed-fields), and leave the object to one of the two',
  WriteRefused:
    'allow the write in the policy or webhook that refuses it (docs/security.md, "Other admission plug-ins")',
  RefusedByPolicy:
    'allow what archaware adds in the policy that refuses it (docs/security.md, "Other admission plug-ins")',
  TaintHeldBack:
    'allow the account of archaware in the policy that refuses the write; or add the tolerations to the source of the DaemonSet; or use placement.mode affinity or taints.manage false (docs/alerts.md, "ArchawareTaintsHeldBack")',
  RolloutStopped:
    'allow the tolerations in the policy that refuses its pods, then kubectl rollout restart; or label the DaemonSet archaware.dev/ignore=true, if it may lose its pods on nodes with the taint (docs/alerts.md, "ArchawareRolloutStopped")',
  WrongNode:
    'delete the pod, so that its owner creates another, or create it again, without spec.nodeName if it was given one; archaware explain NAMESPACE/POD says more (docs/operating.md, "Pods on wrong nodes")',
} as const satisfies Partial<Record<EventReason, string>>;

export type TroubleReason = keyof typeof TROUBLES;
