import type { AuditedRequest } from '../../../hack/cluster/audit.ts';
import type { Cluster } from '../../../hack/cluster/cluster.ts';

/** What a `test` of a JSON Patch that no longer holds is answered with, another 422: somebody else was faster. */
const CONFLICT = 'the server rejected our request due to an error in our request';

/** What the service account asked for and may not have, by its roles or by a policy. */
export async function refusals(cluster: Cluster): Promise<string[]> {
  const requests = await cluster.auditedRequests();
  return requests
    .filter((request, index) => isRefused(request, requests.slice(index + 1)))
    .map(({ verb, path, status, message }) => `${verb} ${path} ${status} ${message}`);
}

/**
 * The audit log has no message for a request that asked for the metadata of the object alone. Such a 422 was a conflict if a later
 * attempt succeeded: what a policy refuses, it refuses again.
 */
function isRefused({ verb, path, status, message }: AuditedRequest, later: readonly AuditedRequest[]): boolean {
  if (status !== 422) return status === 403;
  if (message !== '') return message !== CONFLICT;
  return !later.some((other) => other.verb === verb && other.path === path && other.status < 300);
}
