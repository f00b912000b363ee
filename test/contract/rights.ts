import { expect } from 'chai';
import type { Client } from '../../hack/cluster/client.ts';
import { connect } from './client.ts';
import { type Context, createPod, done, NAMESPACE, NOWHERE, OURS, PODS, refused } from './context.ts';

const USER = `system:serviceaccount:${NAMESPACE}:limited`;
const ROLES = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: limited, namespace: ${NAMESPACE}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: contract-limited}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, patch]}
- {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: contract-limited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: contract-limited}
subjects: [{kind: ServiceAccount, name: limited, namespace: ${NAMESPACE}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: contract-lease, namespace: ${NAMESPACE}}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [mine], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: contract-lease, namespace: ${NAMESPACE}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: contract-lease}
subjects: [{kind: ServiceAccount, name: limited, namespace: ${NAMESPACE}}]
`;

const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
/** RBAC as a service account experiences it. */
export function describeRights(context: () => Context): void {
  let limited: Client;
  before(async () => {
    const { cluster } = context();
    await cluster.apply(ROLES);
    limited = await connect(await cluster.serviceAccountKubeconfig(NAMESPACE, 'limited'));
    await createPod(context(), 'guarded-pod', NOWHERE);
    await cluster.waitFor('the rights', async () => (await limited.request('GET', '/api/v1/pods')).status === 200);
    const mine = `${LEASES}/mine`;
    await cluster.waitFor('the right to the lease', async () => (await limited.request('GET', mine)).status === 404);
  });
  after(() => limited.close());

  it('allows exactly what the roles grant', async () => {
    const path = `${PODS}/guarded-pod`;
    done(await limited.request('GET', path));
    done(await limited.request('PATCH', path, [{ op: 'add', path: '/spec/tolerations/-', value: OURS }]));
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'guarded-pod', namespace: NAMESPACE },
    };
    refused(await limited.request('PATCH', `${path}/status`, []), 403, 'Forbidden');
    refused(await limited.request('DELETE', path), 403, 'Forbidden');
    done(await limited.request('POST', `${path}/eviction`, eviction));
  });

  it('answers what they allow', async () => {
    for (const [verb, allowed] of [
      ['patch', true],
      ['delete', false],
    ]) {
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, resource: 'pods', namespace: NAMESPACE } },
      };
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      expect(done(await limited.request('POST', path, review))).to.have.nested.property('status.allowed', allowed);
    }
  });

  const refusals: readonly (readonly [
    method: 'GET' | 'POST' | 'DELETE' | 'PATCH',
    path: string,
    what: string,
    verb: string,
    group?: string,
  ])[] = [
    ['GET', '/api/v1/nodes', 'nodes', 'list nodes'],
    ['GET', '/api/v1/nodes/x', 'nodes "x"', 'get nodes'],
    ['DELETE', `${PODS}/x`, 'pods "x"', 'delete pods'],
    ['POST', `${PODS}/x/binding`, 'pods "x"', 'create pods/binding'],
    ['PATCH', `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/x`, 'daemonsets.apps "x"', 'patch daemonsets', 'apps'],
    ['GET', `${PODS}/x:9090/proxy/metrics`, 'pods "x:9090"', 'get pods/proxy'],
    ['GET', `${LEASES}/other`, 'leases.coordination.k8s.io "other"', 'get leases', 'coordination.k8s.io'],
  ];
  for (const [method, path, what, right, group = ''] of refusals) {
    it(`refuses ${method} ${path}`, async () => {
      const body = method === 'GET' || method === 'DELETE' ? undefined : method === 'PATCH' ? [] : {};
      const [verb, resource] = right.split(' ');
      const where = path.includes(NAMESPACE) ? `in the namespace "${NAMESPACE}"` : 'at the cluster scope';
      expect(refused(await limited.request(method, path, body), 403, 'Forbidden').message).to.equal(
        `${what} is forbidden: User "${USER}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`,
      );
    });
  }

  it('refuses an unknown token', async () => {
    const { cluster } = context();
    const answer = await limited.request('GET', '/version');
    expect(answer.status).to.equal(200);
    const stranger = await connect(await cluster.serviceAccountKubeconfig(NAMESPACE, 'limited'), 'stranger');
    refused(await stranger.request('GET', PODS), 401, 'Unauthorized');
    await stranger.close();
  });
}
