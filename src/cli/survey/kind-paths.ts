/** Where each kind is found, and the names that kubectl gives it: the second is that of the API. */
export const KINDS: readonly { readonly kind: string; readonly path: string; readonly names: readonly string[] }[] = [
  { kind: 'Pod', path: '/api/v1', names: ['pod', 'pods', 'po'] },
  { kind: 'Deployment', path: '/apis/apps/v1', names: ['deployment', 'deployments', 'deploy'] },
  { kind: 'StatefulSet', path: '/apis/apps/v1', names: ['statefulset', 'statefulsets', 'sts'] },
  { kind: 'DaemonSet', path: '/apis/apps/v1', names: ['daemonset', 'daemonsets', 'ds'] },
  { kind: 'ReplicaSet', path: '/apis/apps/v1', names: ['replicaset', 'replicasets', 'rs'] },
  { kind: 'Job', path: '/apis/batch/v1', names: ['job', 'jobs'] },
  { kind: 'CronJob', path: '/apis/batch/v1', names: ['cronjob', 'cronjobs', 'cj'] },
];

/** Returns the path of an object of one of these kinds; of all of them without a name. */
export function pathOf(kind: string, namespace: string | undefined, name?: string): string {
  const { path, names } = KINDS.find((each) => each.kind === kind) ?? { path: '', names: [] };
  const inside = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${path}${inside}/${names[1]}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
}
