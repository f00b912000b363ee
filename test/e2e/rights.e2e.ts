import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { kustomize, type ManifestObject } from '../../hack/manifests/kustomize.ts';

const OVERLAYS = new URL('../../manifests/kustomize/overlays/', import.meta.url);
/** The mode in which nothing is written; `clean` is run before a change to it. */
const WITHOUT_CLEAN: ReadonlySet<string> = new Set(['observe']);

const removed = (resource: string, ...names: readonly string[]) =>
  names.flatMap((name) => [`get ${resource} ${name}`, `delete ${resource} ${name}`]);
const POLICIES = ['archaware-keep', 'archaware-keep-pods', 'archaware-place', 'archaware-place-daemonsets'];

/** What `clean` needs, whatever mode left it: verbs, resource, and the name where it is for one object. */
const NEEDED = [
  ...['nodes', 'namespaces', 'pods', 'daemonsets'].flatMap((resource) => [`list ${resource}`, `patch ${resource}`]),
  ...['get pods', 'get daemonsets', 'get deployments archaware-controller'],
  ...removed('mutatingadmissionpolicies', ...POLICIES),
  ...removed('mutatingadmissionpolicybindings', ...POLICIES),
  ...removed('knownimages', 'known'),
  ...removed('mutatingwebhookconfigurations', 'archaware-controller'),
  ...removed('secrets', 'archaware-controller-webhook'),
  ...['delete configmaps archaware-controller-status', 'create leases'],
  ...['get leases archaware-controller', 'update leases archaware-controller'],
];
/** The policy that limits a right to patch. */
const GUARDS = {
  nodes: 'archaware-guard-nodes',
  namespaces: 'archaware-guard-namespaces',
  pods: 'archaware-guard-pods',
  daemonsets: 'archaware-guard-daemonsets',
};

/** Returns the rights that roles grant to the service account, in the form of {@link NEEDED}. */
function grantedBy(objects: readonly ManifestObject[]): Set<string> {
  const bound = objects
    .filter(({ kind }) => kind === 'ClusterRoleBinding' || kind === 'RoleBinding')
    .map((binding) => `${at(binding, 'roleRef', 'kind')} ${at(binding, 'roleRef', 'name')}`);
  const roles = objects.filter(({ kind, metadata }) => bound.includes(`${kind} ${metadata.name}`));
  return new Set(
    roles.flatMap((role) =>
      listAt(role, 'rules').flatMap((rule) => {
        const names = listAt(rule, 'resourceNames');
        return listAt(rule, 'verbs').flatMap((verb) =>
          listAt(rule, 'resources').flatMap((resource) =>
            names.length === 0 ? `${verb} ${resource}` : names.map((name) => `${verb} ${resource} ${name}`),
          ),
        );
      }),
    ),
  );
}

describe('the account of every way to install', () => {
  const names = readdirSync(OVERLAYS, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? entry.name : [],
  );
  for (const name of names.filter((overlay) => !WITHOUT_CLEAN.has(overlay))) {
    it(`may remove what any other mode leaves, and no more than the policies allow: ${name}`, async () => {
      const objects = await kustomize(new URL(`${name}/`, OVERLAYS));
      const granted = grantedBy(objects);
      const may = (right: string) => {
        const [verb, resource] = right.split(' ');
        return granted.has(right) || granted.has(`${verb} ${resource}`);
      };
      expect(NEEDED.filter((right) => !may(right))).to.deep.equal([]);
      for (const [resource, policy] of Object.entries(GUARDS)) {
        if (!granted.has(`patch ${resource}`)) continue;
        const bindings = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding');
        expect(
          bindings.map(({ metadata }) => metadata.name),
          resource,
        ).to.include(policy);
      }
    });
  }
});
