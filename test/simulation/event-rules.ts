import type { Occurrence } from '../../src/kube/events.ts';
import type { Replica } from './program.ts';

/** The rules for Events. */
export type EventRules = {
  onEvent(replica: string, occurrence: Occurrence): void;
  stripped(): void;
  undid(uid: string): void;
  /** Records that its author changed an object: an Event may say the same again. */
  changed(uid: string): void;
};

/** A problem that lasts is reported again after this time. */
const AGAIN_MS = 30 * 60_000;

/** Creates the rules. `fail` is called with the rule that was broken. */
export function createEventRules(options: {
  readonly now: () => number;
  readonly fail: (rule: string) => void;
  readonly replica: (name: string) => Replica | undefined;
  /** Whether the API server has the pod. */
  readonly hasPod: (uid: string) => boolean;
}): EventRules {
  const { now, fail, replica, hasPod } = options;
  /** When each Event was written last, by the replica, its term, and all that the Event says. */
  const written = new Map<string, number>();
  let isStripped = false;
  const undone = new Set<string>();
  const changes = new Map<string, number>();
  return {
    onEvent(name, { regarding, reason, note }) {
      const title = `${reason} about ${regarding.kind} ${regarding.name}`;
      const key = [name, replica(name)?.terms(), regarding.uid, changes.get(regarding.uid), reason, note].join(' ');
      const last = written.get(key);
      // A watch that lags behind may bring a pod back that is gone, and of which nothing is known any more.
      const isThere = regarding.kind !== 'Pod' || hasPod(regarding.uid);
      if (last !== undefined && now() - last < AGAIN_MS && isThere)
        fail(`the Event ${title} twice in ${(now() - last) / 1000} s`);
      written.set(key, now());
      const isTrue = regarding.kind === 'Pod' ? isStripped : undone.has(regarding.uid);
      if (reason === 'WriteContested' && !isTrue) fail(`the Event ${title}, although nobody undid anything`);
    },
    stripped() {
      isStripped = true;
    },
    undid: (uid) => void undone.add(uid),
    changed: (uid) => void changes.set(uid, (changes.get(uid) ?? 0) + 1),
  };
}
