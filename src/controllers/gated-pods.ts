import type { Clock } from '../kit/clock.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { ApiError } from '../kube/errors.ts';
import { readAll } from '../kube/read.ts';
import { ARCHITECTURE_GATE } from '../names.ts';

/** A gated pod is not scheduled, so it is Pending. */
const PENDING = '/api/v1/pods?fieldSelector=status.phase%3DPending';
/** The interval of the checks while there are such pods. */
const AGAIN_MS = 60_000;

/** Counts, in one term of leadership after the other, the gated pods that no pod controller of this process releases. */
export function createGatedPods(options: {
  readonly client: Pick<ApiClient, 'request'>;
  readonly clock: Clock;
  /** Called with the keys (`namespace/name`) of the pods whenever they change; not called before there are any. */
  readonly onChange: (keys: readonly string[]) => void;
  readonly onError: (error: unknown) => void;
}) {
  const { client, clock, onChange, onError } = options;
  let found: readonly string[] = [];

  async function look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        // Only their names are kept: the pods may be large.
        const now = await readAll(client, PENDING, gatedKey, signal);
        if (signal.aborted) return;
        const isOther = now.join() !== found.join();
        found = now;
        if (isOther) onChange(now);
        if (now.length === 0) return;
      } catch (error) {
        if (signal.aborted || (error instanceof ApiError && error.status === 403)) return;
        onError(error);
      }
      await clock.delay(AGAIN_MS, signal);
    }
  }

  return {
    /** What the present term has found; 0 between terms: then this replica does not know. */
    count: (): number => found.length,
    /**
     * Looks for such pods during one term: once, and each minute while there are any, until the signal aborts. Without the right to
     * list pods it ends at once.
     */
    async watch(signal: AbortSignal): Promise<void> {
      await look(signal);
      found = [];
    },
  };
}

function gatedKey(pod: JsonObject): string | undefined {
  const gates = listAt(objectAt(pod, 'spec'), 'schedulingGates') ?? [];
  if (!gates.some(({ name }) => name === ARCHITECTURE_GATE)) return undefined;
  const metadata = objectAt(pod, 'metadata');
  return `${stringAt(metadata, 'namespace')}/${stringAt(metadata, 'name')}`;
}
