import type { ApiClient } from '../kube/client.ts';
import { isGone } from '../kube/errors.ts';
import { DEPLOYMENT, FIELD_MANAGER } from '../names.ts';

/**
 * Scales our Deployment to nothing, so that no replica takes the lead from then on. False where there is no Deployment. Throws
 * what the API server refuses.
 */
export async function stopDeployment(client: ApiClient, namespace: string, signal: AbortSignal): Promise<boolean> {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${DEPLOYMENT}/scale`;
  try {
    await client.request('patch', `${path}?fieldManager=${FIELD_MANAGER}`, {
      body: [{ op: 'add', path: '/spec/replicas', value: 0 }],
      contentType: 'application/json-patch+json',
      signal,
    });
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}
