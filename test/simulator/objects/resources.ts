/** A resource of the simulated API; the flags say what an update may change and what the server keeps about it. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /** `v1`, `apps/v1` */
  readonly apiVersion: string;
  readonly namespaced: boolean;
  /** `status` is written by its subresource alone. */
  readonly status: boolean;
  /** `metadata.generation` is kept: starts at 1, bumped by every change outside metadata and status. */
  readonly generation: boolean;
  /** A PUT needs no `metadata.resourceVersion`. */
  readonly unconditional: boolean;
}

/** What a path of the API names: an object, or all of a resource where the name is empty. */
export interface Address {
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  /** '' for the object itself, else `status`. */
  readonly subresource: string;
}

const TABLE = `
  v1                               pods                       Pod                      namespaced status generation
  v1                               nodes                      Node                     status
  v1                               namespaces                 Namespace                status
  v1                               secrets                    Secret                   namespaced
  v1                               configmaps                 ConfigMap                namespaced
  v1                               services                   Service                  namespaced status
  v1                               serviceaccounts            ServiceAccount           namespaced
  v1                               resourcequotas             ResourceQuota            namespaced status
  v1                               limitranges                LimitRange               namespaced
  apps/v1                          deployments                Deployment               namespaced status generation
  apps/v1                          replicasets                ReplicaSet               namespaced status generation
  apps/v1                          statefulsets               StatefulSet              namespaced status generation
  apps/v1                          daemonsets                 DaemonSet                namespaced status generation
  apps/v1                          controllerrevisions        ControllerRevision       namespaced
  batch/v1                         jobs                       Job                      namespaced status generation
  batch/v1                         cronjobs                   CronJob                  namespaced status generation
  policy/v1                        poddisruptionbudgets       PodDisruptionBudget      namespaced status generation conditional
  networking.k8s.io/v1             networkpolicies            NetworkPolicy            namespaced generation
  scheduling.k8s.io/v1             priorityclasses            PriorityClass            generation
  coordination.k8s.io/v1           leases                     Lease                    namespaced conditional
  events.k8s.io/v1                 events                     Event                    namespaced
  rbac.authorization.k8s.io/v1     roles                      Role                     namespaced
  rbac.authorization.k8s.io/v1     rolebindings               RoleBinding              namespaced
  rbac.authorization.k8s.io/v1     clusterroles               ClusterRole
  rbac.authorization.k8s.io/v1     clusterrolebindings        ClusterRoleBinding
  admissionregistration.k8s.io/v1  mutatingadmissionpolicies          MutatingAdmissionPolicy          generation
  admissionregistration.k8s.io/v1  mutatingadmissionpolicybindings    MutatingAdmissionPolicyBinding   generation
  admissionregistration.k8s.io/v1  validatingadmissionpolicies        ValidatingAdmissionPolicy        status generation
  admissionregistration.k8s.io/v1  validatingadmissionpolicybindings  ValidatingAdmissionPolicyBinding generation
  admissionregistration.k8s.io/v1  mutatingwebhookconfigurations      MutatingWebhookConfiguration     generation
  admissionregistration.k8s.io/v1  validatingwebhookconfigurations    ValidatingWebhookConfiguration   generation
`;

export const RESOURCES: readonly Resource[] = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [apiVersion = '', plural = '', kind = '', ...flags] = line.trim().split(/\s+/);
    const [first = '', second] = apiVersion.split('/');
    return {
      group: second === undefined ? '' : first,
      version: second ?? first,
      plural,
      kind,
      apiVersion,
      namespaced: flags.includes('namespaced'),
      status: flags.includes('status'),
      generation: flags.includes('generation'),
      unconditional: !flags.includes('conditional'),
    };
  });

const byPlural = new Map(RESOURCES.map((resource) => [`${resource.apiVersion}/${resource.plural}`, resource]));
const byKind = new Map(RESOURCES.map((resource) => [`${resource.apiVersion}/${resource.kind}`, resource]));

export const findResource = (apiVersion: string, plural: string) => byPlural.get(`${apiVersion}/${plural}`);
export const findKind = (apiVersion: string, kind: string) => byKind.get(`${apiVersion}/${kind}`);

/** The resource that must be in the table: for the simulator's own controllers. */
export function resourceOf(apiVersion: string, plural: string): Resource {
  const resource = findResource(apiVersion, plural);
  if (resource === undefined) throw new Error(`no resource ${apiVersion}/${plural} in the table`);
  return resource;
}

export const PODS = resourceOf('v1', 'pods');
export const NODES = resourceOf('v1', 'nodes');
export const NAMESPACES = resourceOf('v1', 'namespaces');
export const SERVICE_ACCOUNTS = resourceOf('v1', 'serviceaccounts');
export const DAEMON_SETS = resourceOf('apps/v1', 'daemonsets');
export const REPLICA_SETS = resourceOf('apps/v1', 'replicasets');
export const SERVICES = resourceOf('v1', 'services');
export const MUTATING_WEBHOOKS = resourceOf('admissionregistration.k8s.io/v1', 'mutatingwebhookconfigurations');
export const BUDGETS = resourceOf('policy/v1', 'poddisruptionbudgets');
