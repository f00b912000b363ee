import { list, object, objects, text } from '../json.ts';
import { type Resource, resourceOf } from './resources.ts';
import { forbidden } from './status.ts';
import type { Store } from './store.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ROLES = resourceOf(RBAC, 'roles');
const ROLE_BINDINGS = resourceOf(RBAC, 'rolebindings');
const CLUSTER_ROLES = resourceOf(RBAC, 'clusterroles');
const CLUSTER_ROLE_BINDINGS = resourceOf(RBAC, 'clusterrolebindings');

/** What someone wants to do. */
export interface Attempt {
  readonly user: string;
  readonly verb: string;
  readonly resource: Resource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

interface Rule {
  /** '' counts for every namespace. */
  readonly namespace: string;
  readonly verbs: readonly unknown[];
  readonly groups: readonly unknown[];
  readonly resources: readonly unknown[];
  readonly names: readonly unknown[];
}

/** RBAC over the roles and bindings in the store. `check` throws the 403 of the real server. */
export function createRbac(store: Store) {
  let cached = new Map<string, Rule[]>();
  store.subscribe(({ resource }) => {
    if (resource.group === CLUSTER_ROLES.group) cached = new Map();
  });

  const rulesOf = (user: string): Rule[] => {
    let rules = cached.get(user);
    if (!rules) {
      rules = [CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS].flatMap((kind) =>
        store.list(kind).flatMap((binding) => {
          if (!objects(binding.subjects).some((subject) => isSubject(subject, user))) return [];
          const namespace = text(object(binding.metadata).namespace);
          const reference = object(binding.roleRef);
          const isRole = reference.kind === 'Role';
          const role = store.get(isRole ? ROLES : CLUSTER_ROLES, isRole ? namespace : '', text(reference.name));
          return objects(role?.rules).map((rule) => ({
            namespace,
            verbs: list(rule.verbs),
            groups: list(rule.apiGroups),
            resources: list(rule.resources),
            names: list(rule.resourceNames),
          }));
        }),
      );
      cached.set(user, rules);
    }
    return rules;
  };

  return {
    check(attempt: Attempt): void {
      const { user, verb, resource, subresource, namespace, name } = attempt;
      const what = subresource === '' ? resource.plural : `${resource.plural}/${subresource}`;
      const allowed = rulesOf(user).some(
        (rule) =>
          (rule.namespace === '' || rule.namespace === namespace) &&
          has(rule.verbs, verb) &&
          has(rule.groups, resource.group) &&
          (has(rule.resources, what) || (subresource !== '' && rule.resources.includes(`*/${subresource}`))) &&
          (rule.names.length === 0 || rule.names.includes(name)),
      );
      if (allowed) return;
      const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
      const message = `User "${user}" cannot ${verb} resource "${what}" in API group "${resource.group}" ${where}`;
      throw forbidden(resource, name, message);
    },
  };
}

const has = (values: readonly unknown[], wanted: string) => values.includes(wanted) || values.includes('*');

/** Roles are bound to service accounts alone here, not to users or groups. */
function isSubject(subject: Record<string, unknown>, user: string): boolean {
  const { kind, name, namespace } = subject;
  return kind === 'ServiceAccount' && user === `system:serviceaccount:${text(namespace)}:${text(name)}`;
}
