import { APP_LABEL, DEPLOYMENT } from '../names.ts';
import type { Pod } from '../placement/objects/pod.ts';
import type { Replicas } from './paths.ts';

/** The label of a Deployment's pods that is the same for all pods of one template. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Compares the templates of all replicas in a namespace with that of the pod `own`. A terminating pod counts until it is gone,
 * because it answers until then. `unknown` if `own` is not among the pods: the process runs outside the cluster, or on the node's
 * network, where the host name is not the pod's.
 */
export function replicasAlike(
  pods: Iterable<Pick<Pod, 'namespace' | 'name' | 'labels' | 'phase'>>,
  namespace: string,
  own: string,
): Replicas {
  const replicas = [...pods].filter(
    (pod) =>
      pod.namespace === namespace &&
      pod.labels[APP_LABEL] === DEPLOYMENT &&
      pod.phase !== 'Succeeded' &&
      pod.phase !== 'Failed',
  );
  const hash = replicas.find(({ name }) => name === own)?.labels[TEMPLATE_HASH];
  if (hash === undefined) return 'unknown';
  return replicas.every(({ labels }) => labels[TEMPLATE_HASH] === hash) ? 'alike' : 'mixed';
}
