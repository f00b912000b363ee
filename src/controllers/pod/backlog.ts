import type { Clock } from '../../kit/clock.ts';
import { createFairQueue, namespaceOf } from '../../kit/fairness/fair-queue.ts';
import type { ImageAnswer } from '../../placement/images.ts';
import type { PodImage } from '../../placement/objects/containers.ts';

/**
 * The queue of bound pods whose images are not known. These pods run already, so their images are looked up slowly. New pods never
 * wait behind them, and namespaces take turns.
 */
export type Backlog = ReturnType<typeof createBacklog>;

/** The pace of lookups for bound pods: five images a second. */
const PER_IMAGE_MS = 200;

/** Creates an empty backlog. `onTurn` must reconcile the pod; it is called until `end`. */
export function createBacklog(clock: Clock, onTurn: (key: string) => void) {
  const queue = createFairQueue<string>();
  /** The pods whose turn has come, until they are reconciled. */
  const granted = new Set<string>();
  let isPumping = false;
  /** The lookups since the last step. */
  let asked = 0;
  let cancel = () => {};

  function pump(images: number): void {
    isPumping = true;
    cancel = clock.after(images * PER_IMAGE_MS, () => {
      const more = asked - 1;
      asked = 0;
      if (more > 0) return pump(more);
      isPumping = false;
      const next = queue.take();
      if (next === undefined) return;
      granted.add(next);
      // How many lookups this turn has is known when its first step is over.
      pump(1);
      onTurn(next);
    });
  }

  function wait(key: string): void {
    queue.add(namespaceOf(key), key);
    if (!isPumping) pump(1);
  }

  return {
    /**
     * Returns the function that answers for the images of a bound pod in one reconciliation. It answers from memory, and starts
     * lookups only if it is the pod's turn. Otherwise the pod is queued.
     */
    answers(
      key: string,
      recall: (image: PodImage) => ImageAnswer,
      ask: (image: PodImage) => ImageAnswer,
    ): (image: PodImage) => ImageAnswer {
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
    forget(key: string): void {
      queue.delete(namespaceOf(key), key);
      granted.delete(key);
    },
    end(): void {
      cancel();
    },
  };
}
