import { APP_LABEL, DEPLOYMENT } from '../names.ts';
import type { Pod } from '../placement/objects/pod.ts';
import type { Replicas } from './paths.ts';

/** What a Deployment's ReplicaSets tell their pods apart by: pods of one template have the same. */
const TEMPLATE_HASH = 'pod-template-hash';

/**
 * Whether all replicas in a namespace are of the template of one of them, `own`. A pod that ends counts until it is gone, as it
 * answers until then. `unknown` where `own` is not among the pods: a process outside the cluster, or one on the node's network,
 * whose host name is not its pod's.
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
