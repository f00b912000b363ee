import { readNodePools } from '../app/node-pools.ts';
import type { ApiClient } from '../kube/client.ts';
import { type NodePoolProblem, nodePoolProblems } from '../placement/nodes/node-pools.ts';
import type { Settings } from '../placement/settings.ts';

/** A problem of a NodePool of Karpenter. */
export type PoolProblem = { readonly kind: string; readonly name: string } & NodePoolProblem;

/** Reads the problems of the NodePools; undefined if they cannot be read, for a reason that `note` gets. */
export async function readPoolProblems(
  client: ApiClient,
  settings: Settings,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly PoolProblem[] | undefined> {
  const pools = await readNodePools(client, note, signal);
  return pools?.flatMap((pool) =>
    nodePoolProblems(pool, settings).map((problem) => ({ kind: 'NodePool', name: pool.name, ...problem })),
  );
}
