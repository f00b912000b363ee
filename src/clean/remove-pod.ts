import type { Clock } from '../kit/clock.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { ApiError, LeaseLostError } from '../kube/errors.ts';
import { evict, obstacle, TWO_BUDGETS } from '../kube/evict.ts';
import { isTemporary, retrying } from '../kube/retry.ts';
import { reasonOf } from './object-steps.ts';
import type { CarryingPod } from './traces.ts';

export type RemoveOptions = {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly mayWrite: () => boolean;
  readonly signal: AbortSignal;
};

/** The reason why a pod cannot be removed. `final`: another attempt is useless. */
export type RemovalObstacle = { readonly reason: string; readonly final: boolean };

/**
 * Evicts one pod. Returns what blocks it. The uid in the request protects a newer pod of the same name. Throws if
 * `clean` must end.
 */
export async function removePod(options: RemoveOptions, pod: CarryingPod): Promise<RemovalObstacle | undefined> {
  const { client, clock, signal } = options;
  const { namespace, name, uid } = pod;
  const send = async () => {
    if (!options.mayWrite()) throw new LeaseLostError('the lease was lost; run clean again');
    await evict(client, { namespace, name, uid }, signal);
  };
  // An eviction may be sent twice: the second one finds no pod, or another uid. A 429 because of a disruption budget is not
  // overload of the server, so it is not retried here but later.
  const may = (error: unknown) => isTemporary(error) && (!(error instanceof ApiError) || obstacle(error) === undefined);
  try {
    await retrying(send, { clock, signal, may });
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) return { reason: reasonOf(error, signal), final: false };
    const { status } = error;
    if (status === 404 || status === 409) return undefined;
    if (status === 401 || status === 403) {
      return { reason: 'these credentials may not evict it; run clean as an administrator', final: true };
    }
    const reason = reasonOf(error, signal);
    if (status === 500) return { reason: `${TWO_BUDGETS}: ${reason}`, final: false };
    if (status === 429) return { reason: obstacle(error) ?? reason, final: false };
    return { reason, final: status === 400 || status === 422 };
  }
}
