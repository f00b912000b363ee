import type { Clock } from '../kit/clock.ts';
import { printable } from '../kit/printable.ts';
import type { EventRecorder, Regarding } from '../kube/events.ts';
import { NOTE_BYTES } from '../names.ts';
import type { Node } from '../placement/nodes/node.ts';
import type { Problem } from '../placement/object-problems.ts';
import type { DaemonSet } from '../placement/objects/daemonset.ts';
import type { Pod } from '../placement/objects/pod.ts';
import { idOf, note, type ObjectRecord } from './memory.ts';

/** Writes the Events about problems of objects. */
export type Announcer = ReturnType<typeof createAnnouncer>;

/** Events expire after an hour by default, so a problem that lasts is reported again before that. */
const REPORT_AGAIN_MS = 30 * 60_000;

const MOST_REMEMBERED = 32;

/** Creates an announcer over the recorder of Events. */
export function createAnnouncer(events: Pick<EventRecorder, 'emit'>, clock: Clock) {
  return {
    /**
     * Reports a problem once, and again every half hour while it lasts. An Event that could not be written is tried again at the next
     * call. Forget what was reported with the record of the object, or as its note `announced` once it has no problems any more.
     */
    report(record: ObjectRecord, regarding: Regarding, problem: Problem): void {
      const { estimate = '', outlook = '', ...occurrence } = problem;
      const now = clock.monotonic();
      const announced = record.notes?.announced;
      const id = idOf(`${problem.reason} ${problem.note}`);
      const last = announced?.get(id);
      const isSame = last !== undefined && (outlook === '' || outlook === last.outlook);
      if (isSame && now - last.at < REPORT_AGAIN_MS) return;
      const said = withOutlook(problem.note + estimate, outlook);
      if (!events.emit({ regarding, type: 'Warning', ...occurrence, note: said })) return;
      const all = new Map(announced);
      const [first] = all.keys();
      if (last === undefined && all.size >= MOST_REMEMBERED && first !== undefined) all.delete(first);
      note(record, 'announced', all.set(id, { at: now, outlook }));
    },
  };
}

/** Returns what an Event about an object is about. */
export function regardingPod({ namespace, name, uid }: Pick<Pod, 'namespace' | 'name' | 'uid'>): Regarding {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}

/** Returns the same for a node. */
export function regardingNode({ name, uid }: Pick<Node, 'name' | 'uid'>): Regarding {
  return { apiVersion: 'v1', kind: 'Node', name, uid };
}

/** Returns the same for a DaemonSet. */
export function regardingDaemonSet({ namespace, name, uid }: Pick<DaemonSet, 'namespace' | 'name' | 'uid'>): Regarding {
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name, uid };
}

/** Adds the outlook to a note. A note that is too long for an Event loses its own end, not the outlook. */
function withOutlook(note: string, outlook: string): string {
  if (outlook === '') return note;
  const end = `; ${outlook}`;
  return printable(note, NOTE_BYTES - Buffer.byteLength(end)) + end;
}
