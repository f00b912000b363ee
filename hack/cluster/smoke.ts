import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { request as send } from 'undici';
import { type Cluster, startCluster } from './cluster.ts';
import { at, listAt } from './json.ts';
import { type Registry, startRegistry } from './registry.ts';

// Proves that the cluster and the registry do what the end-to-end tests lean on: npx tsx hack/cluster/smoke.ts

async function step(what: string, run: () => Promise<void>): Promise<void> {
  const begun = performance.now();
  await run();
  console.log(`${String(Math.round(performance.now() - begun)).padStart(6)} ms  ${what}`);
}

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

async function put(url: string, type: string, body: Buffer, authorization?: string): Promise<void> {
  const headers = { 'content-type': type, ...(authorization ? { authorization } : {}) };
  const answer = await send(url, { method: 'PUT', headers, body });
  assert.equal(answer.statusCode, 201, await answer.body.text());
}

/** The least that the registry takes as an image: an empty configuration and a manifest of no layers. */
async function push(registry: Registry, authorization?: string): Promise<void> {
  const headers = authorization ? { authorization } : {};
  const upload = await send(`${registry.url}/v2/a/b/blobs/uploads/`, { method: 'POST', headers });
  assert.equal(upload.statusCode, 202, await upload.body.text());
  const config = Buffer.from('{"architecture":"arm64","os":"linux"}');
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
  const place = new URL(String(upload.headers.location), registry.url);
  place.searchParams.set('digest', digest);
  await put(place.href, 'application/octet-stream', config, authorization);
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const descriptor = { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: config.length };
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: descriptor, layers: [] }));
  await put(`${registry.url}/v2/a/b/manifests/1`, mediaType, manifest, authorization);
}

async function statusOfManifest(registry: Registry, authorization?: string): Promise<number> {
  // Without it the registry answers 404 for what is no Docker manifest.
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const headers = { accept, 'user-agent': 'smoke', ...(authorization ? { authorization } : {}) };
  const answer = await send(`${registry.url}/v2/a/b/manifests/1`, { method: 'HEAD', headers });
  await answer.body.dump();
  return answer.statusCode;
}

async function openRegistry(): Promise<void> {
  const registry = await startRegistry();
  try {
    await push(registry);
    await registry.forgetRequests();
    assert.equal(await statusOfManifest(registry), 200);
    await registry.stop();
    await assert.rejects(statusOfManifest(registry));
    await registry.start();
    assert.equal(await statusOfManifest(registry), 200);
    const expected = { method: 'HEAD', path: '/v2/a/b/manifests/1', status: 200, userAgent: 'smoke' };
    assert.deepEqual(await registry.requests(), [expected, expected]);
  } finally {
    await registry.remove();
  }
}

const basic = ({ username, password }: { username: string; password: string }) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

async function basicRegistry(): Promise<void> {
  const registry = await startRegistry({ htpasswd: true });
  try {
    await push(registry, basic(registry.account));
    assert.equal(await statusOfManifest(registry), 401);
    assert.equal(await statusOfManifest(registry, basic({ username: 'test-user', password: 'wrong' })), 401);
    assert.equal(await statusOfManifest(registry, basic(registry.account)), 200);
  } finally {
    await registry.remove();
  }
}

async function token(registry: Registry, actions: string, authorization?: string): Promise<string> {
  const query = new URLSearchParams({ service: 'archaware-registry', scope: `repository:a/b:${actions}` });
  const headers = authorization ? { authorization } : {};
  const answer = await send(`${registry.tokenServer?.realm}?${query}`, { headers });
  return `Bearer ${String(at(await answer.body.json(), 'token'))}`;
}

async function bearerRegistry(): Promise<void> {
  const registry = await startRegistry({ tokenAuth: { anonymousPull: true } });
  try {
    await push(registry, await token(registry, 'pull,push', basic(registry.account)));
    assert.equal(await statusOfManifest(registry), 401);
    assert.equal(await statusOfManifest(registry, await token(registry, 'pull')), 200);
  } finally {
    await registry.remove();
  }
}

async function tlsRegistry(): Promise<void> {
  const registry = await startRegistry({ tls: true });
  try {
    await assert.rejects(statusOfManifest(registry), /self-signed|certificate/);
  } finally {
    await registry.remove();
  }
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
await step('registry: push, access log, stop and start', openRegistry);
await step('registry: Basic', basicRegistry);
await step('registry: Bearer', bearerRegistry);
await step('registry: TLS', tlsRegistry);
