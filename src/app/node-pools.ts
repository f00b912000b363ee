import { messageOf } from '../kit/errors.ts';
import type { ApiClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { readAll } from '../kube/list.ts';
import { type NodePool, readNodePool } from '../placement/nodes/node-pools.ts';

const KARPENTER = '/apis/karpenter.sh/v1';
/** The status codes that mean: Karpenter is not installed, or these credentials may not read its objects. */
const NOT_THERE: ReadonlySet<number> = new Set([403, 404]);

/**
 * Reads Karpenter's NodePools with the rights of the user who runs the command; undefined if they cannot be read. They are only
 * used for hints, so no failure ends the command. A failure that is not about rights is passed to `note`.
 */
export async function readNodePools(
  client: ApiClient,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<NodePool[] | undefined> {
  try {
    // Every user may ask whether the kind exists. If not, no request is sent that could be refused.
    await client.request('get', KARPENTER, { signal });
    return await readAll(client, `${KARPENTER}/nodepools`, readNodePool, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && NOT_THERE.has(error.status)) return undefined;
    note(`NodePools could not be read: ${messageOf(error)}`);
    return undefined;
  }
}
