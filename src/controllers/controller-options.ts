import type { Clock } from '../kit/clock.ts';
import type { Failure, Result } from '../kube/control-loop.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Store } from '../kube/watch/collection.ts';
import type { WatchAttempt } from '../kube/watch/trouble.ts';
import type { Writer } from '../kube/writer.ts';
import type { Namespace } from '../placement/objects/namespace.ts';
import type { Settings } from '../placement/settings.ts';
import type { WrongReason } from '../placement/wrong-node/judge.ts';
import type { ImageSource } from './image-source.ts';

/** What every controller works with that writes. */
export type WritingOptions = {
  readonly write: Writer;
  readonly events: Pick<EventRecorder, 'emit'>;
  readonly clock: Clock;
  readonly onRefused?: (() => void) | undefined;
  /**
   * Returns when a write of any object, the Lease included, last succeeded, in milliseconds on the monotonic clock. Absent: not
   * known, and then a 500 never counts as permanent.
   */
  readonly lastWriteMs?: (() => number | undefined) | undefined;
};

/** What the controllers of pods and of DaemonSets work with. */
export type PlacingOptions = WritingOptions & {
  readonly namespaces: Store<Namespace>;
  /** Returns the present settings; a reload may replace them at any time. */
  readonly settings: () => Settings;
  readonly clusterArchitectures: () => readonly string[];
  readonly images: ImageSource;
  /** Whether images of bound pods are looked up slowly, and DaemonSets take turns to roll. False for `plan`, which needs all answers. */
  readonly isPaced: boolean;
  /** Called when the turn of an object has come: of a bound pod for lookups, of a DaemonSet to roll. It must then be reconciled. */
  readonly onTurn: (key: string) => void;
  /** Called when an object was decided, for the bootstrap. */
  readonly onDecided: (key: string) => void;
};

/** What was done about a pod on a wrong node, as `archaware_wrong_node_pods_total` counts it. */
export type WrongNodeAction = 'warned' | 'evicted' | 'blocked';

/** What the watches and the controllers report of their work. A replica writes it to its log and counts it in its metrics. */
export type Telemetry = {
  watchRestarted(kind: string, reason: string): void;
  /** Lists or watches of a kind fail: once for each kind of failure, until they work again. */
  watchFails(kind: string, attempt: WatchAttempt, reason: string): void;
  watchWorks(kind: string): void;
  /** The bytes of an event that a watch delivered. */
  heard(bytes: number): void;
  outcome(controller: string, key: string, seconds: number, result: Result | Failure): void;
  /** A pod was placed so many seconds after its creation. */
  placed(seconds: number): void;
  refused(controller: string): void;
  /** Once for each pod, reason and action. */
  wrongNode(reason: WrongReason, action: WrongNodeAction): void;
  /** A node of this pool joined without archaware's taint. */
  joinedUntainted(pool: string): void;
};
