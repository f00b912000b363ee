import type { Failure, Result } from '../kube/control-loop.ts';
import type { WatchAttempt } from '../kube/watch/trouble.ts';
import type { WrongReason } from '../placement/wrong-node/judge.ts';

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
