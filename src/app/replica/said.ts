import { printable } from '../../kit/printable.ts';
import type { EventRecorder, Occurrence, Regarding } from '../../kube/events.ts';
import { TROUBLES, type TroubleReason } from '../troubles.ts';

/** What an Event of this replica said about an object. */
export type Said = { readonly regarding: Regarding; readonly reason: TroubleReason; readonly note: string };

/** How many are remembered: of one namespace, so that its authors displace no others, and in all. */
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
    const [oldest] = alike.length >= MOST.ofNamespace ? alike : said.size >= MOST.inAll ? said : [];
    if (oldest !== undefined) said.delete(oldest[0]);
    said.set(key, entry);
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
