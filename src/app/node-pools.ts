import { messageOf } from '../kit/errors.ts';
import type { ApiClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { readAll } from '../kube/list.ts';
import { type NodePool, readNodePool } from '../placement/nodes/node-pools.ts';

const KARPENTER = '/apis/karpenter.sh/v1';
/** Karpenter is not there, or these credentials may not read its objects. */
const NOT_THERE: ReadonlySet<number> = new Set([403, 404]);

/**
 * Reads the NodePools of Karpenter with the rights of whoever runs the command; undefined where they cannot be read. Nothing
 * depends on them, so no failure ends the command: one that is not about rights goes to standard error.
 */
export async function readNodePools(client: ApiClient, signal: AbortSignal): Promise<NodePool[] | undefined> {
  try {
    // Everybody may ask whether the kind is there. Where it is not, no request is made that could be refused.
    await client.request('get', KARPENTER, { signal });
    return await readAll(client, `${KARPENTER}/nodepools`, readNodePool, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && NOT_THERE.has(error.status)) return undefined;
    process.stderr.write(`NodePools could not be read: ${messageOf(error)}\n`);
    return undefined;
  }
}
