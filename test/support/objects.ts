/** Reading what the API server says of objects, in the words of the tests. */
import { at, listAt } from '../../hack/cluster/json.ts';

/** `supported-arch=amd64:NoSchedule`; `key:effect` for `Exists`; an empty effect is all of them. */
function tolerationText(toleration: unknown): string {
  const text = (field: string) => String(at(toleration, field) ?? '');
  const value = text('operator') === 'Exists' ? '' : `=${text('value')}`;
  return `${text('key')}${value}:${text('effect')}`;
}

/** The tolerations of a pod, or of a template (`spec.template`), as text, without those that Kubernetes adds itself. */
export function tolerations(podOrTemplate: unknown): string[] {
  return listAt(podOrTemplate, 'spec', 'tolerations')
    .map(tolerationText)
    .filter((text) => !text.startsWith('node.kubernetes.io/'))
    .sort();
}

/** The tolerations that the controller writes by default for these architectures, as `tolerations` gives them. */
export function ours(...architectures: readonly string[]): string[] {
  return architectures.map((architecture) => `supported-arch=${architecture}:NoSchedule`).sort();
}

/** The taints of a node as `key=value:effect`, in their order, without those that Kubernetes sets itself. */
export function taints(node: unknown): string[] {
  return listAt(node, 'spec', 'taints')
    .map((taint) => `${at(taint, 'key')}=${at(taint, 'value') ?? ''}:${at(taint, 'effect')}`)
    .filter((text) => !text.startsWith('node.kubernetes.io/'));
}

export const nameOf = (object: unknown): string => String(at(object, 'metadata', 'name'));
export const uidOf = (object: unknown): string => String(at(object, 'metadata', 'uid'));
export const annotation = (object: unknown, name: string): unknown => at(object, 'metadata', 'annotations', name);

/** The node that a pod is bound to; undefined while it waits. */
export function scheduledOn(pod: unknown): string | undefined {
  const name = at(pod, 'spec', 'nodeName');
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Whether a pod runs (or, a job's, has run). */
export const runs = (pod: unknown): boolean => ['Running', 'Succeeded'].includes(String(at(pod, 'status', 'phase')));
export const isReady = (pod: unknown): boolean =>
  listAt(pod, 'status', 'conditions').some((each) => at(each, 'type') === 'Ready' && at(each, 'status') === 'True');
export const isGoing = (object: unknown): boolean => at(object, 'metadata', 'deletionTimestamp') !== undefined;

/** Grants a ClusterRole to a service account of the namespace default, which stands for a person: everywhere, or in that namespace alone. */
export function roleBinding(person: string, role: string, namespace?: string): string {
  const apiGroup = 'rbac.authorization.k8s.io';
  return JSON.stringify({
    apiVersion: `${apiGroup}/v1`,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name: person, ...(namespace && { namespace }) },
    roleRef: { apiGroup, kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: person }],
  });
}

/** The Lease of the installation, held by a replica for longer than a test takes. */
export function heldLease(): string {
  return JSON.stringify({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'archaware-controller', namespace: 'archaware' },
    // The API server takes microseconds.
    spec: {
      holderIdentity: 'a',
      leaseDurationSeconds: 100_000,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    },
  });
}
