import type { Clock } from '../kit/clock.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { readAll } from '../kube/list.ts';
import { ARCHITECTURE_GATE } from '../names.ts';

export type GatedPodsOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  readonly clock: Clock;
  /** Called with the keys (`namespace/name`) of the pods whenever they change; not called before there are any. */
  readonly onChange: (keys: readonly string[]) => void;
  /** Called with an error that made a check fail; the next check follows. */
  readonly onError: (error: unknown) => void;
};

/** Counts the gated pods that no pod controller of this process releases. */
export type GatedPods = {
  /** What the present term has found; 0 between terms: then this replica does not know. */
  count(): number;
  /** Looks for gated pods during one term, until the signal aborts. */
  watch(signal: AbortSignal): Promise<void>;
};

/** Creates the count for one term of leadership after the other. */
export function createGatedPods(options: GatedPodsOptions): GatedPods {
  let count = 0;
  const onChange = (keys: readonly string[]) => {
    count = keys.length;
    options.onChange(keys);
  };
  return {
    count: () => count,
    async watch(signal) {
      await watchGatedPods({ ...options, onChange }, signal);
      count = 0;
    },
  };
}

/** A gated pod is not scheduled, so it is Pending. */
const PENDING = '/api/v1/pods?fieldSelector=status.phase%3DPending';
/** The interval of the checks while there are such pods. */
const AGAIN_MS = 60_000;

/**
 * Looks for pods that have archaware's scheduling gate. For a leader without the pod controller, which releases none. It checks
 * once, and each minute while there are such pods, until the signal aborts. Without the right to list pods it ends at once.
 */
async function watchGatedPods(options: GatedPodsOptions, signal: AbortSignal): Promise<void> {
  const { client, clock, onChange, onError } = options;
  let before: readonly string[] = [];
  while (!signal.aborted) {
    try {
      const now = await gatedPods(client, signal);
      if (signal.aborted) return;
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

function gatedKey(pod: JsonObject): string | undefined {
  const gates = listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [];
  if (!gates.some(({ name }) => name === ARCHITECTURE_GATE)) return undefined;
  const metadata = objectAt(pod, 'metadata');
  return `${stringAt(metadata, 'namespace')}/${stringAt(metadata, 'name')}`;
}

async function gatedPods(client: GatedPodsOptions['client'], signal: AbortSignal): Promise<string[]> {
  // Only their names are kept: the pods may be large.
  return await readAll(client, PENDING, gatedKey, signal);
}
