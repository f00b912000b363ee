import type { Clock } from '../../kit/clock.ts';
import { createFairKeys } from '../../kit/fairness/fair-keys.ts';
import type { ImageAnswer } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/image.ts';

/**
 * Bound pods that lack what archaware writes: they run, so their images are asked about last and slowly, whatever their
 * number. New pods are never behind them, and namespaces take turns.
 */
export type Backlog = {
  /**
   * The answers for one reconciliation of a bound pod: from memory, and by asking a registry only when it is the pod's turn;
   * else the pod is queued and counts as waiting.
   */
  answers(
    key: string,
    recall: (image: PodImage) => ImageAnswer,
    ask: (image: PodImage) => ImageAnswer,
  ): (image: PodImage) => ImageAnswer;
  forget(key: string): void;
  /** Gives no turn any more. */
  end(): void;
};

/** Images asked about on behalf of bound pods: five a second. */
const PER_IMAGE_MS = 200;

/** Creates it. `onTurn` is to reconcile the pod; it is called until `end`. */
export function createBacklog(clock: Clock, onTurn: (key: string) => void): Backlog {
  const queue = createFairKeys();
  /** Whose turn it is, until they are reconciled. */
  const granted = new Set<string>();
  let isPumping = false;
  let asked = 0;
  let cancel = () => {};

  function pump(): void {
    isPumping = true;
    cancel = clock.after(Math.max(1, asked) * PER_IMAGE_MS, () => {
      asked = 0;
      isPumping = false;
      const next = queue.take();
      if (next === undefined) return;
      granted.add(next);
      pump();
      onTurn(next);
    });
  }

  function wait(key: string): void {
    queue.add(key);
    if (!isPumping) pump();
  }

  return {
    answers(key, recall, ask) {
      const isItsTurn = granted.delete(key);
      return (image) => {
        const known = recall(image);
        const isDue =
          known.kind === 'pending' || (known.kind === 'failed' && known.retryInMs === Number.POSITIVE_INFINITY);
        if (!isDue) return known;
        if (!isItsTurn) {
          wait(key);
          return known;
        }
        asked++;
        return ask(image);
      };
    },
    forget(key) {
      queue.delete(key);
      granted.delete(key);
    },
    end() {
      cancel();
    },
  };
}
