import { printable } from '../../kit/printable.ts';
import type { EventRecorder, Occurrence, Regarding } from '../../kube/events.ts';
import type { EventReason } from '../../names.ts';

/** The reasons of Events that are problems, each with what to do, in one line. */
export const TROUBLES = {
  WriteContested:
    'find the other writer (kubectl get -o yaml --show-managed-fields), and leave the object to one of the two',
  WriteRefused:
    'if a right is missing, apply the manifest of the mode again; otherwise allow the write in the policy or webhook that refuses it (docs/security.md, "Other admission plug-ins")',
  RefusedByPolicy:
    'allow what archaware adds in the policy that refuses it (docs/security.md, "Other admission plug-ins"); then kubectl rollout restart, because the owner tries again ever more rarely',
  TaintHeldBack:
    'if its write is refused, allow the account of archaware in the policy that refuses it, or add the tolerations to the source of the DaemonSet; if it waits for others, or is not back, see to the DaemonSet that rolls (Event RolloutStopped); or use placement.mode affinity or taints.manage false (docs/alerts.md, "ArchawareTaintsHeldBack")',
  RolloutStopped:
    'if a policy refuses its pods, allow the tolerations there, then kubectl rollout restart; if its pods do not get ready, correct what keeps them from it; or label the DaemonSet archaware.dev/ignore=true, if it may lose its pods on nodes with the taint (docs/alerts.md, "ArchawareRolloutStopped")',
  WrongNode:
    'delete the pod, so that its owner creates another, or create it again, without spec.nodeName if it was given one; archaware explain NAMESPACE/POD says more (docs/operating.md, "Pods on wrong nodes")',
} as const satisfies Partial<Record<EventReason, string>>;

export type TroubleReason = keyof typeof TROUBLES;

/** What an Event of this replica said about an object. */
export type Said = { readonly regarding: Regarding; readonly reason: TroubleReason; readonly note: string };

/** How many are remembered: of one namespace, so that its authors displace no others, and in all, where the largest one gives way. */
const MOST = { ofNamespace: 10, inAll: 100, bytes: 400 } as const;

/** Remembers what the Events of a recorder say that may be a problem, for the status of the leader. */
export function rememberSaid(events: EventRecorder): EventRecorder & { said(): Iterable<Said> } {
  const said = new Map<string, Said>();
  const homeOf = ({ regarding: { namespace = '' } }: Pick<Said, 'regarding'>) => namespace;

  function remember({ regarding, reason, note }: Occurrence & { readonly reason: TroubleReason }): void {
    const { kind, namespace, name } = regarding;
    const key = [kind, namespace, name, reason].join('/');
    said.delete(key);
    const entry = { regarding, reason, note: printable(note, MOST.bytes) };
    const alike = [...said].filter(([, other]) => homeOf(other) === homeOf(entry));
    const [oldest] = alike.length >= MOST.ofNamespace ? alike : said.size >= MOST.inAll ? largest() : [];
    if (oldest !== undefined) said.delete(oldest[0]);
    said.set(key, entry);
  }

  function largest(): readonly (readonly [key: string, Said])[] {
    const homes = new Map<string, (readonly [key: string, Said])[]>();
    for (const each of said) homes.set(homeOf(each[1]), [...(homes.get(homeOf(each[1])) ?? []), each]);
    return [...homes.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
  }

  return {
    ...events,
    emit(occurrence) {
      const isAccepted = events.emit(occurrence);
      const { reason } = occurrence;
      if (isAccepted && isTrouble(reason)) remember({ ...occurrence, reason });
      return isAccepted;
    },
    said: () => said.values(),
  };
}

function isTrouble(reason: string): reason is TroubleReason {
  return Object.hasOwn(TROUBLES, reason);
}
