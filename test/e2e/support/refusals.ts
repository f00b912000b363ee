import type { Cluster } from '../../../hack/cluster/cluster.ts';

/** What a `test` of a JSON Patch that no longer holds is answered with, another 422: somebody else was faster. */
const CONFLICT = 'the server rejected our request due to an error in our request';

/** What the service account asked for and may not have, by its roles or by a policy. */
export async function refusals(cluster: Cluster): Promise<string[]> {
  return (await cluster.auditedRequests())
    .filter(({ status, message }) => status === 403 || (status === 422 && message !== CONFLICT))
    .map(({ verb, path, status, message }) => `${verb} ${path} ${status} ${message}`);
}
