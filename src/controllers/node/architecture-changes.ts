import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Change } from '../../kube/watch/collection.ts';
import type { Node } from '../../placement/nodes/node.ts';
import { architectureChangeNote } from '../../placement/nodes/witness.ts';
import { createAnnouncer, regardingNode } from '../announce.ts';
import { createRecords } from '../object-record.ts';

/** Creates a listener that writes an Event when a node reports another architecture than before. */
export function createArchitectureChanges(events: Pick<EventRecorder, 'emit'>, clock: Clock) {
  const announcer = createAnnouncer(events, clock);
  const records = createRecords();
  return ({ now, before }: Pick<Change<Node>, 'now' | 'before'>): void => {
    if (before !== undefined && before.uid !== now?.uid) records.forget(before.uid);
    const note = now && before && architectureChangeNote(before, now);
    if (now === undefined || note === undefined) return;
    const problem = { reason: 'NodeArchitectureChanged', action: 'Tainting', note } as const;
    announcer.report(records.of(now.uid, now.uid), regardingNode(now), problem);
  };
}
