import type { Clock } from '../kit/clock.ts';
import { isObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { listAll } from '../kube/list.ts';
import { ARCHITECTURE_GATE } from '../names.ts';

export type GatedPodsOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  readonly clock: Clock;
  /** Called with the keys (`namespace/name`) of the pods whenever they are others than before; first where there are any. */
  readonly onChange: (keys: readonly string[]) => void;
  /** What kept it from looking; it looks again. */
  readonly onError: (error: unknown) => void;
};

/** A gated pod is not scheduled, so it is Pending. */
const PENDING = '/api/v1/pods?fieldSelector=status.phase%3DPending';
/** Between two looks while there are any. */
const AGAIN_MS = 60_000;

/**
 * Looks for pods that hold archaware's scheduling gate, for a leader that has no loop for pods and so releases none: once,
 * and again each minute while there are some, until the signal aborts. Where pods may not be listed there is nothing to say.
 */
export async function watchGatedPods(options: GatedPodsOptions, signal: AbortSignal): Promise<void> {
  const { client, clock, onChange, onError } = options;
  let before: readonly string[] = [];
  while (!signal.aborted) {
    try {
      const now = await gatedPods(client, signal);
      if (now.join() !== before.join()) onChange(now);
      before = now;
      if (now.length === 0) return;
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status === 403)) return;
      onError(error);
    }
    await clock.delay(AGAIN_MS, signal);
  }
}

async function gatedPods(client: GatedPodsOptions['client'], signal: AbortSignal): Promise<string[]> {
  const pods = await listAll(client, PENDING, signal);
  const gated = pods.filter((pod) =>
    (listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? []).some(
      (gate) => isObject(gate) && gate.name === ARCHITECTURE_GATE,
    ),
  );
  return gated.map((pod) => {
    const metadata = objectAt(pod, 'metadata');
    return `${stringAt(metadata, 'namespace')}/${stringAt(metadata, 'name')}`;
  });
}
