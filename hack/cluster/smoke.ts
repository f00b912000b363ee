import assert from 'node:assert/strict';
import { type Cluster, startCluster } from './cluster.ts';
import { at, listAt } from './json.ts';
import { step } from './smoke-step.ts';

// Proves that the cluster does what the end-to-end tests rely on: npx tsx hack/cluster/smoke.ts (smoke-registry.ts does
// the same for registries).

async function phases(cluster: Cluster, app: string): Promise<string[]> {
  const { body } = await cluster.request('GET', `/api/v1/namespaces/default/pods?labelSelector=app%3D${app}`);
  return listAt(body, 'items').map((pod) => String(at(pod, 'status', 'phase')));
}

const allAre = (cluster: Cluster, app: string, count: number, phase: string) => async () => {
  const found = await phases(cluster, app);
  return found.length === count && found.every((each) => each === phase);
};

async function kubectl(cluster: Cluster, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function podsRunAndWait(cluster: Cluster): Promise<void> {
  await kubectl(cluster, 'create', 'deployment', 'free', '--image=example.test/free:1', '--replicas=3');
  await cluster.waitFor('pods to run', allAre(cluster, 'free', 3, 'Running'));
  await kubectl(cluster, 'taint', 'nodes', '--all', 'supported-arch:NoSchedule');
  await kubectl(cluster, 'create', 'deployment', 'kept', '--image=example.test/kept:1', '--replicas=2');
  const unschedulable = async () => {
    const { body } = await cluster.request('GET', '/api/v1/namespaces/default/pods?labelSelector=app%3Dkept');
    const pods = listAt(body, 'items');
    return pods.length === 2 && pods.every((pod) => at(pod, 'status', 'conditions', 0, 'reason') === 'Unschedulable');
  };
  await cluster.waitFor('pods to be unschedulable', unschedulable);
  await kubectl(cluster, 'taint', 'nodes', '--all', 'supported-arch:NoSchedule-');
  await cluster.waitFor('pods to run after the untaint', allAre(cluster, 'kept', 2, 'Running'));
}

async function workloadsCompleteAndEnd(cluster: Cluster): Promise<void> {
  await kubectl(cluster, 'create', 'job', 'once', '--image=example.test/once:1');
  await kubectl(cluster, 'wait', '--for=condition=complete', 'job/once', '--timeout=30s');
  await kubectl(cluster, 'delete', 'deployment', 'free', 'kept', '--wait=true');
  await cluster.waitFor('the pods to be gone', async () => (await phases(cluster, 'free')).length === 0);
}

async function accountHasItsRights(cluster: Cluster): Promise<void> {
  await kubectl(cluster, 'create', 'serviceaccount', 'reader');
  await kubectl(cluster, 'create', 'clusterrole', 'reader', '--verb=get,list', '--resource=nodes');
  await kubectl(
    cluster,
    'create',
    'clusterrolebinding',
    'reader',
    '--clusterrole=reader',
    '--serviceaccount=default:reader',
  );
  const kubeconfig = await cluster.serviceAccountKubeconfig('default', 'reader');
  assert.equal((await cluster.kubectl(['get', 'nodes'], { kubeconfig })).code, 0);
  const refused = await cluster.kubectl(['get', 'pods'], { kubeconfig });
  assert.match(refused.stderr, /Forbidden/);
  const seen = await cluster.auditedRequests();
  assert.deepEqual(
    [...new Set(seen.map(({ user, verb, status }) => `${user} ${verb} ${status}`))].filter((line) =>
      line.includes('list'),
    ),
    ['system:serviceaccount:default:reader list 200', 'system:serviceaccount:default:reader list 403'],
  );
}

async function apiServerComesBack(cluster: Cluster): Promise<void> {
  await step('  it stops', () => cluster.stopApiServer());
  await assert.rejects(cluster.request('GET', '/readyz'));
  await step('  it starts', () => cluster.startApiServer());
  const { body } = await cluster.request('GET', '/api/v1/nodes');
  assert.equal(listAt(body, 'items').length, 2);
}

async function schedulingGoesOn(cluster: Cluster): Promise<void> {
  await kubectl(cluster, 'create', 'deployment', 'later', '--image=example.test/later:1');
  await cluster.waitFor('a pod to run', allAre(cluster, 'later', 1, 'Running'), 60_000);
}

async function mutatingPoliciesAreServed(cluster: Cluster): Promise<void> {
  const { body } = await cluster.request('GET', '/apis/admissionregistration.k8s.io/v1');
  const names = listAt(body, 'resources').map((resource) => at(resource, 'name'));
  for (const name of ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'])
    assert.ok(names.includes(name), name);
}

const begun = performance.now();
const cluster = await startCluster({ auditNamespaces: ['default'] });
console.log(`${String(Math.round(performance.now() - begun)).padStart(6)} ms  start to ready`);
try {
  await step('two nodes take pods', async () => {
    const nodes = ['amd64', 'arm64'].map((architecture) => ({ name: `${architecture}-1`, architecture }));
    await Promise.all(nodes.map((node) => cluster.createNode(node)));
  });
  await step('pods run, wait under taints, run after them', () => podsRunAndWait(cluster));
  await step('jobs complete, deleted pods go', () => workloadsCompleteAndEnd(cluster));
  await step('a node changes its architecture', async () => {
    await cluster.setNodeArchitecture('arm64-1', 'riscv64');
    const { body } = await cluster.request('GET', '/api/v1/nodes/arm64-1');
    assert.equal(at(body, 'status', 'nodeInfo', 'architecture'), 'riscv64');
  });
  await step('a service account has its rights only, and is audited', () => accountHasItsRights(cluster));
  await step('mutating admission policies are served', () => mutatingPoliciesAreServed(cluster));
  await step('the API server stops and comes back', () => apiServerComesBack(cluster));
  await step('pods are scheduled after that', () => schedulingGoesOn(cluster));
} finally {
  await step('stop', () => cluster.stop());
}
