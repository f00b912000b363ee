import type { Clock } from '../../kit/clock.ts';
import type { Placement } from '../../placement/decide.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Settings } from '../../placement/settings.ts';

/**
 * The last decisions, for the pods of one template: of 2,000 pods of a Deployment, each is like the others. Only decisions that
 * knew all images are kept, for a second, so that they are as fresh as if the pods had been decided at once.
 */
export type DecisionMemo = {
  find(pod: Pod, settings: Settings, clusterArchitectures: readonly string[]): Placement | undefined;
  keep(pod: Pod, settings: Settings, clusterArchitectures: readonly string[], decision: Placement): void;
  /** Forgets everything, because something that decides has changed. */
  clear(): void;
};

type Entry = {
  readonly pod: Pod;
  readonly settings: Settings;
  readonly clusterArchitectures: readonly string[];
  readonly decision: Placement;
  readonly at: number;
};

const KEPT_MS = 1_000;

/** Creates an empty memo. It recognizes the images of a template by the list, which pods with equal images share. */
export function createDecisionMemo({ monotonic }: Pick<Clock, 'monotonic'>): DecisionMemo {
  let entries = new WeakMap<Pod['images'], Entry>();
  return {
    find(pod, settings, clusterArchitectures) {
      const entry = entries.get(pod.images);
      const isAlike =
        entry !== undefined &&
        entry.settings === settings &&
        entry.clusterArchitectures === clusterArchitectures &&
        entry.pod.namespace === pod.namespace &&
        entry.pod.pullSecrets === pod.pullSecrets &&
        entry.pod.os === pod.os &&
        entry.pod.hasRuntimeClass === pod.hasRuntimeClass &&
        entry.pod.statement === pod.statement;
      return isAlike && monotonic() - entry.at < KEPT_MS ? entry.decision : undefined;
    },
    keep(pod, settings, clusterArchitectures, decision) {
      if (decision.basis !== 'images' || decision.unknown.length > 0) return;
      entries.set(pod.images, { pod, settings, clusterArchitectures, decision, at: monotonic() });
    },
    clear() {
      entries = new WeakMap();
    },
  };
}
