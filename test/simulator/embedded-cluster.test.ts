import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Client } from '../../hack/cluster/client.ts';
import { connect } from '../contract/client.ts';
import { type EmbeddedCluster, type EmbeddedOptions, startEmbeddedCluster } from './embedded-cluster.ts';
import { assign, at, list, objects, text } from './json.ts';
import { ApiError } from './objects/status.ts';

const PODS = '/api/v1/namespaces/default/pods';
const ADD = [{ op: 'add', path: '/spec/tolerations/-', value: { key: 'a', operator: 'Exists' } }];
const MANIFEST = `
apiVersion: v1
kind: Namespace
metadata: {name: ours}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ours, namespace: ours}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ours}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ours}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ours}
subjects: [{kind: ServiceAccount, name: ours, namespace: ours}]
`;

describe('the embedded cluster, in addition to the contract', () => {
  let cluster: EmbeddedCluster;
  let ours: Client;
  const start = async (options: EmbeddedOptions = {}) => {
    cluster = await startEmbeddedCluster({ manifest: MANIFEST, ...options });
    ours = await connect(await cluster.serviceAccountKubeconfig('ours', 'ours'));
  };
  const waiting = (name: string) => cluster.createPod({ name, spec: { schedulerName: 'nobody' } });
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => 'no failure',
      (error: unknown) => text(at(error, 'code')) || String(error),
    );
  afterEach(async () => {
    await ours.close();
    await cluster.stop();
  });

  it('logs requests, and separates the writes of others from those of the tests', async () => {
    await start();
    await waiting('a');
    await ours.request('GET', PODS);
    await ours.request('DELETE', `${PODS}/a`);
    expect(cluster.writes()).to.deep.equal([]);
    await ours.request('PATCH', `${PODS}/a`, ADD);
    const [write, ...more] = cluster.writes();
    expect(more).to.deep.equal([]);
    expect(write).to.deep.include({
      method: 'PATCH',
      path: `${PODS}/a`,
      status: 200,
      userAgent: 'test',
      body: ADD,
    });
    expect(write?.user).to.equal('system:serviceaccount:ours:ours');
    expect(
      cluster
        .requests()
        .filter(({ user }) => user === write?.user)
        .map(({ status }) => status),
    ).to.deep.equal([200, 403, 200]);
  });

  it('applies a fault as often as requested', async () => {
    await start();
    await waiting('a');
    cluster.faults.inject({ method: 'PATCH', path: /pods\/a/, times: 2, status: 503, headers: { 'retry-after': '1' } });
    const answers = [];
    for (let index = 0; index < 3; index += 1) answers.push(await ours.request('PATCH', `${PODS}/a`, ADD));
    expect(answers.map(({ status }) => status)).to.deep.equal([503, 503, 200]);
    expect(answers[0]?.headers['retry-after']).to.equal('1');
  });

  it('lets a plug-in of others change or refuse what is created and updated, until it is removed', async () => {
    await start();
    const labels = (body: unknown) => at(body, 'metadata', 'labels', 'by');
    const remove = cluster.faults.admit((item, { resource, operation }) => {
      if (resource !== 'pods') return item;
      if (at(item, 'metadata', 'name') === 'refused') throw new ApiError(403, 'Forbidden', 'not here');
      return assign(item, ['metadata', 'labels', 'by'], operation.toLowerCase());
    });
    expect(labels(await cluster.createPod({ name: 'plugged' }))).to.equal('create');
    const patch = { metadata: { annotations: { some: 'thing' } } };
    expect(labels((await cluster.request('PATCH', `${PODS}/plugged`, patch)).body)).to.equal('update');
    const refused = { metadata: { name: 'refused' }, spec: { containers: [{ name: 'app', image: 'x' }] } };
    expect((await cluster.request('POST', PODS, refused)).status).to.equal(403);
    remove();
    expect((await cluster.request('POST', PODS, refused)).status).to.equal(201);
  });

  it('resets connections, and loses answers of finished work', async () => {
    await start();
    await waiting('a');
    const tolerations = async () =>
      list(at((await ours.request('GET', `${PODS}/a`)).body, 'spec', 'tolerations')).length;
    cluster.faults.inject({ method: 'PATCH', times: 1, reset: true });
    expect(await failure(ours.request('PATCH', `${PODS}/a`, ADD))).to.equal('UND_ERR_SOCKET');
    expect(await tolerations()).to.equal(2);
    cluster.faults.inject({ method: 'PATCH', times: 1, loseAnswer: true });
    expect(await failure(ours.request('PATCH', `${PODS}/a`, ADD))).to.equal('UND_ERR_SOCKET');
    expect(await tolerations()).to.equal(3);
  });

  it('lets another writer write before a patch', async () => {
    await start();
    const pod = await waiting('a');
    const tests = [{ op: 'test', path: '/metadata/generation', value: at(pod, 'metadata', 'generation') }, ...ADD];
    cluster.faults.conflictNextPatch(/pods\/a/, () => cluster.request('PATCH', `${PODS}/a`, ADD));
    expect((await ours.request('PATCH', `${PODS}/a`, tests)).status).to.equal(422);
  });

  it('expires watches in their streams, or by status if requested', async () => {
    await start();
    const events = ours.watch(`${PODS}?watch=1&resourceVersion=0`);
    const first = events.next();
    await cluster.waitFor('the watch', async () => cluster.openWatches() === 1);
    cluster.faults.expireWatches();
    expect(at((await first).value, 'object', 'code')).to.equal(410);
    expect((await events.next()).done).to.equal(true);
    const page = await ours.request('GET', `${PODS}?limit=1`);
    await waiting('a');
    cluster.faults.compactHistory();
    cluster.faults.goneAsStatus = true;
    const version = text(at(page.body, 'metadata', 'resourceVersion'));
    expect((await ours.request('GET', `${PODS}?watch=1&resourceVersion=${version}`)).status).to.equal(410);
  });

  it('refuses the next page of a list after a compaction', async () => {
    await start();
    await waiting('a');
    await waiting('b');
    const page = await ours.request('GET', `${PODS}?limit=1`);
    await waiting('c');
    cluster.faults.compactHistory();
    const next = await ours.request('GET', `${PODS}?limit=1&continue=${text(at(page.body, 'metadata', 'continue'))}`);
    expect([next.status, at(next.body, 'reason')]).to.deep.equal([410, 'Expired']);
  });

  it('stalls watches, which miss what happens meanwhile', async () => {
    await start();
    const events = ours.watch(`${PODS}?watch=1&resourceVersion=0`);
    const first = events.next();
    await cluster.waitFor('the watch', async () => cluster.openWatches() === 1);
    cluster.faults.stallWatches();
    await waiting('a');
    cluster.faults.stallWatches(false);
    await waiting('b');
    expect(at((await first).value, 'object', 'metadata', 'name')).to.equal('b');
    cluster.faults.closeWatches();
    expect((await events.next()).done).to.equal(true);
  });

  it('holds terminating pods', async () => {
    await start();
    await cluster.createNode({ name: 'n', architecture: 'amd64' });
    await cluster.createPod({ name: 'a' });
    const phase = async () => text(at((await cluster.request('GET', `${PODS}/a`)).body, 'status', 'phase'));
    await cluster.waitFor('the pod to run', async () => (await phase()) === 'Running');
    cluster.faults.holdTermination = true;
    await cluster.request('DELETE', `${PODS}/a`);
    const pod = await cluster.request('GET', `${PODS}/a`);
    expect(text(at(pod.body, 'metadata', 'deletionTimestamp'))).to.match(/Z$/);
    await cluster.request('DELETE', `${PODS}/a`, { gracePeriodSeconds: 0 });
    expect((await cluster.request('GET', `${PODS}/a`)).status).to.equal(404);
  });

  it('crashes containers whose image is for another architecture', async () => {
    await start({ imagePlatforms: (image) => (image.startsWith('arm/') ? ['arm64'] : undefined) });
    await cluster.createNode({ name: 'n', architecture: 'amd64' });
    await cluster.createPod({ name: 'a', images: ['arm/only:1'] });
    const status = await cluster.waitFor('the container to crash', async () => {
      const [container] = objects(at((await cluster.request('GET', `${PODS}/a`)).body, 'status', 'containerStatuses'));
      return container;
    });
    expect(at(status, 'state', 'waiting', 'reason')).to.equal('CrashLoopBackOff');
    expect(at(status, 'lastState', 'terminated', 'message')).to.equal('exec format error');
  });

  it('keeps not-ready on a node until its status says Ready', async () => {
    await start({ kubelet: false });
    await cluster.createNode({ name: 'n', architecture: 'amd64' });
    const taints = async () => list(at((await cluster.request('GET', '/api/v1/nodes/n')).body, 'spec', 'taints'));
    expect(await taints()).to.deep.equal([{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }]);
    await cluster.request('PATCH', '/api/v1/nodes/n/status', {
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await cluster.waitFor('the taint to go', async () => (await taints()).length === 0);
  });

  it('rolls a Deployment over and a StatefulSet in order', async () => {
    await start();
    await cluster.createNode({ name: 'n', architecture: 'amd64' });
    const workload = (kind: string, image: string) => `
apiVersion: apps/v1
kind: ${kind}
metadata: {name: w}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${kind}}}
  template: {metadata: {labels: {app: ${kind}}}, spec: {containers: [{name: c, image: "${image}"}]}}
`;
    for (const kind of ['Deployment', 'StatefulSet']) {
      for (const image of ['x:1', 'x:2']) {
        await cluster.apply(workload(kind, image));
        await cluster.waitFor(`two pods of ${kind} with ${image}`, async () => {
          const pods = objects(at((await cluster.request('GET', `${PODS}?labelSelector=app%3D${kind}`)).body, 'items'));
          const images = pods.map((pod) => at(objects(at(pod, 'spec', 'containers'))[0], 'image'));
          return images.length === 2 && images.every((found) => found === image);
        });
      }
    }
  });

  it('keeps its data and its port when it is stopped and started', async () => {
    await start();
    await waiting('a');
    await cluster.stopApiServer();
    expect(await failure(ours.request('GET', PODS))).to.match(/ECONNREFUSED|UND_ERR_SOCKET/);
    await cluster.startApiServer();
    expect((await ours.request('GET', `${PODS}/a`)).status).to.equal(200);
  });

  it('reads a namespace that was created', async () => {
    await start();
    const { status, body } = await cluster.request('GET', '/api/v1/namespaces/ours');
    expect([status, at(body, 'metadata', 'name')]).to.deep.equal([200, 'ours']);
  });

  it('writes a kubeconfig for a token', async () => {
    await start();
    const directory = await mkdtemp(join(tmpdir(), 'archaware-test-'));
    const token = cluster.serviceAccountToken('ours', 'ours');
    const path = await cluster.writeKubeconfig(directory, token);
    expect(await readFile(path, 'utf8'))
      .to.contain(token)
      .and.to.contain(cluster.server);
    await rm(directory, { recursive: true });
  });
});
