import { expect } from 'chai';
import type { Client } from '../../hack/cluster/client.ts';
import { connect } from '../contract/client.ts';
import { type EmbeddedCluster, type EmbeddedOptions, startEmbeddedCluster } from './embedded-cluster.ts';
import { at, list, text } from './json.ts';

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

  it('expires watches in their streams', async () => {
    await start();
    const events = ours.watch(`${PODS}?watch=1&resourceVersion=0`);
    const first = events.next();
    await cluster.waitFor('the watch', async () => cluster.openWatches() === 1);
    cluster.faults.expireWatches();
    expect(at((await first).value, 'object', 'code')).to.equal(410);
    expect((await events.next()).done).to.equal(true);
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
});
