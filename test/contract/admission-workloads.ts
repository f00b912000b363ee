import { expect } from 'chai';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { patching } from '../support/webhook-server.ts';
import { type Context, done, NAMESPACE, NODE_NAMES, NOWHERE, OURS, PODS, patchFailed } from './context.ts';
import { webhooksOf } from './webhooks.ts';

const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;
const SETS = `${APPS}/daemonsets`;
const rulesFor = (...operations: readonly string[]) => [
  { apiGroups: ['apps'], apiVersions: ['v1'], operations, resources: ['daemonsets'] },
];
const image = (tag: string) => [
  { op: 'replace', path: '/spec/template/spec/containers/0/image', value: `registry.example.com/app:${tag}` },
];
const TOLERATE = { op: 'add', path: '/spec/template/spec/tolerations', value: [OURS] };

/** What the controller's webhook relies on when a DaemonSet is written, and when controllers create pods. */
export function describeWorkloadAdmission(context: () => Context): void {
  const { server, install } = webhooksOf(context);
  const client = () => context().client;
  const workload = (name: string, more: JsonObject = {}, podSpec: JsonObject = {}) => {
    const labels = { app: name };
    const containers = [{ name: 'app', image: 'registry.example.com/app:1' }];
    const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers, ...podSpec } };
    return { metadata: { name }, spec: { selector: { matchLabels: labels }, template, ...more } };
  };
  const createSet = async (name: string) => done(await client().request('POST', SETS, workload(name)));
  const called = (path: string, times: number) =>
    context().cluster.waitFor(`${times} calls of ${path}`, async () => {
      const requests = server().requests(path);
      return requests.length >= times && requests;
    });
  const settled = (name: string) =>
    context().cluster.waitFor(`${name} to be settled`, async () => {
      const set = done(await client().request('GET', `${SETS}/${name}`));
      const wants = { observedGeneration: at(set, 'metadata', 'generation'), numberAvailable: NODE_NAMES.length };
      return Object.entries(wants).every(([field, value]) => at(set, 'status', field) === value) && set;
    });

  it('shows a DaemonSet that is created, and a patched one together with its old version', async () => {
    await install(server().webhook('d', { rules: rulesFor('CREATE', 'UPDATE') }));
    await createSet('reviewed');
    const before = await settled('reviewed');
    done(await client().request('PATCH', `${SETS}/reviewed?fieldManager=someone`, image('2')));
    const [created, patched, ...more] = server().requests('/d');
    expect(more).to.deep.equal([]);
    expect(created).to.deep.include({ operation: 'CREATE', name: 'reviewed', oldObject: null });
    expect(at(created, 'object', 'metadata')).to.not.have.any.keys('uid', 'generation');
    expect(patched).to.deep.include({ operation: 'UPDATE', name: 'reviewed', namespace: NAMESPACE });
    expect(patched?.options).to.deep.equal({
      kind: 'UpdateOptions',
      apiVersion: 'meta.k8s.io/v1',
      fieldManager: 'someone',
    });
    expect(at(patched, 'oldObject', 'spec')).to.deep.equal(before.spec);
    expect(at(patched, 'oldObject', 'metadata', 'uid')).to.equal(at(before, 'metadata', 'uid'));
    expect(at(patched, 'object', 'metadata', 'uid')).to.equal(at(before, 'metadata', 'uid'));
    expect(at(patched, 'object', 'metadata', 'generation')).to.equal(1);
    const [container] = objects(at(patched, 'object', 'spec', 'template', 'spec', 'containers'));
    expect(container?.image).to.equal('registry.example.com/app:2');
  });

  it('shows a DaemonSet that is replaced without the uid that the PUT left out', async () => {
    await install(server().webhook('d', { rules: rulesFor('UPDATE') }));
    const set = await createSet('replaced');
    done(await client().request('PUT', `${SETS}/replaced?dryRun=All`, workload('replaced', { minReadySeconds: 1 })));
    const [request] = server().requests('/d');
    expect(at(request, 'oldObject', 'metadata', 'uid')).to.equal(at(set, 'metadata', 'uid'));
    expect(at(request, 'object', 'metadata')).to.not.have.any.keys('uid', 'resourceVersion', 'generation');
    expect(at(request, 'object', 'spec', 'updateStrategy', 'type')).to.equal('RollingUpdate');
    expect(request?.dryRun).to.equal(true);
  });

  it('calls for patches that change nothing or make it invalid, but not for patches that fail, and not for the status', async () => {
    await createSet('patched');
    await settled('patched');
    await install(server().webhook('d', { rules: rulesFor('UPDATE') }));
    const patch = (body: unknown, subresource = '') =>
      client().request('PATCH', `${SETS}/patched${subresource}?dryRun=All`, body);
    patchFailed(await patch([{ op: 'test', path: '/metadata/name', value: 'other' }]));
    done(await patch({ status: { observedGeneration: 1 } }, '/status'));
    expect(server().requests('/d')).to.deep.equal([]);
    done(await patch({ metadata: { labels: null } }));
    const nameless = [{ op: 'replace', path: '/spec/template/spec/containers/0/name', value: '' }];
    expect((await patch(nameless)).status).to.equal(422);
    expect(server().requests('/d')).to.have.length(2);
  });

  it('lets a webhook change an update: one generation, and the change has no field manager', async () => {
    await install(server().webhook('d', { rules: rulesFor('UPDATE') }));
    await createSet('repaired');
    server().answer('/d', () => patching([TOLERATE]));
    const set = done(await client().request('PATCH', `${SETS}/repaired?fieldManager=someone`, image('2')));
    expect(at(set, 'spec', 'template', 'spec', 'tolerations')).to.deep.equal([OURS]);
    expect(at(set, 'metadata', 'generation')).to.equal(2);
    const owned = JSON.stringify(at(set, 'metadata', 'managedFields'));
    expect(owned).to.include('"someone"').and.to.not.include('f:tolerations');
    // Removing the list and adding it again is not a change, so no rollout begins.
    const drop = [{ op: 'remove', path: '/spec/template/spec/tolerations' }];
    const kept = done(await client().request('PATCH', `${SETS}/repaired`, drop));
    expect(at(kept, 'metadata', 'generation')).to.equal(2);
    expect(at(kept, 'spec', 'template', 'spec', 'tolerations')).to.deep.equal([OURS]);
  });

  it('keeps the update of another client that arrived while a webhook was busy, and calls it again', async () => {
    await createSet('contended');
    await settled('contended');
    await install(server().webhook('d', { rules: rulesFor('UPDATE'), timeoutSeconds: 10 }));
    const annotate = (name: string) => ({ metadata: { annotations: { [name]: 'here' } } });
    let inner: Promise<unknown> | undefined;
    server().answer('/d', (request) => {
      if (at(request, 'object', 'metadata', 'annotations', 'slow') === undefined) return { allowed: true };
      if (inner) return { allowed: true };
      inner = client().request('PATCH', `${SETS}/contended`, annotate('fast'));
      return inner.then(() => ({ allowed: true }));
    });
    const set = done(await client().request('PATCH', `${SETS}/contended`, annotate('slow')));
    expect(at(set, 'metadata', 'annotations')).to.include({ fast: 'here', slow: 'here' });
    expect(server().requests('/d')).to.have.length(3);
  });

  it("shows a DaemonSet’s pod without a name, tied to its node by the node's name", async () => {
    await install(server().webhook('a', { objectSelector: { matchLabels: { app: 'daemon' } } }));
    await createSet('daemon');
    const requests = await called('/a', NODE_NAMES.length);
    for (const request of requests) {
      expect(request).to.not.have.property('name');
      expect(at(request, 'object', 'metadata'))
        .to.include({ generateName: 'daemon-' })
        .and.to.not.have.any.keys('name');
      expect(objects(at(request, 'object', 'metadata', 'ownerReferences'))[0]).to.deep.include({
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        name: 'daemon',
        controller: true,
      });
      expect(at(request, 'object', 'spec', 'nodeName')).to.equal(undefined);
      expect(at(request, 'userInfo', 'username')).to.equal('system:serviceaccount:kube-system:daemon-set-controller');
    }
    const required = 'requiredDuringSchedulingIgnoredDuringExecution';
    const fields = requests.flatMap((request) => {
      const terms = at(request, 'object', 'spec', 'affinity', 'nodeAffinity', required, 'nodeSelectorTerms');
      return objects(terms).flatMap(({ matchFields }) => objects(matchFields));
    });
    expect(fields).to.have.deep.members(
      NODE_NAMES.map((name) => ({ key: 'metadata.name', operator: 'In', values: [name] })),
    );
  });

  const owners: readonly (readonly [string, string, JsonObject, string, string])[] = [
    ['Deployment', `${APPS}/deployments`, {}, 'ReplicaSet', 'replicaset'],
    ['StatefulSet', `${APPS}/statefulsets`, {}, 'StatefulSet', 'statefulset'],
    ['Job', `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`, { selector: undefined }, 'Job', 'job'],
  ];
  for (const [kind, path, more, owner, account] of owners) {
    it(`shows the pod of a ${kind}, which is created as it was patched`, async () => {
      const name = kind.toLowerCase();
      await install(server().webhook('a', { objectSelector: { matchLabels: { app: name } } }));
      server().answer('/a', () => patching([{ op: 'add', path: '/spec/tolerations/-', value: OURS }]));
      done(await client().request('POST', path, workload(name, more, { restartPolicy: restartOf(kind), ...NOWHERE })));
      const [request] = await called('/a', 1);
      expect(objects(at(request, 'object', 'metadata', 'ownerReferences'))[0]).to.include({ kind: owner });
      expect(request?.name).to.equal(kind === 'StatefulSet' ? `${name}-0` : undefined);
      expect(at(request, 'userInfo', 'username')).to.equal(`system:serviceaccount:kube-system:${account}-controller`);
      const pod = await context().cluster.waitFor('the pod', async () => {
        const { body } = await client().request('GET', `${PODS}?labelSelector=app%3D${name}`);
        return objects(at(body, 'items'))[0];
      });
      expect(text(at(pod, 'metadata', 'name'))).to.match(new RegExp(`^${name}-`));
      expect(at(pod, 'spec', 'tolerations')).to.deep.include(OURS);
    });
  }

  it('creates no more pods than wanted, however often their owner changes while a webhook is busy', async () => {
    await install(server().webhook('a', { objectSelector: { matchLabels: { app: 'slow' } } }));
    const set = `${APPS}/replicasets/slow`;
    server().answer('/a', async ({ uid }) => {
      done(await client().request('PATCH', set, { metadata: { annotations: { last: uid } } }));
      return { allowed: true };
    });
    done(await client().request('POST', `${APPS}/replicasets`, workload('slow', { replicas: 3 }, NOWHERE)));
    await context().cluster.waitFor('the pods', async () => {
      const { replicas } = object(done(await client().request('GET', set)).status);
      return replicas === 3;
    });
    expect(server().requests('/a')).to.have.length(3);
  });

  it('creates the pods of a Deployment when they are no longer denied', async () => {
    await install(server().webhook('a', { objectSelector: { matchLabels: { app: 'denied' } } }));
    server().answer('/a', () => ({ allowed: false }));
    done(await client().request('POST', `${APPS}/deployments`, workload('denied', { replicas: 2 }, NOWHERE)));
    await called('/a', 2);
    const count = async () =>
      objects(at((await client().request('GET', `${PODS}?labelSelector=app%3Ddenied`)).body, 'items')).length;
    expect(await count()).to.equal(0);
    server().answer('/a', () => ({ allowed: true }));
    await context().cluster.waitFor('the pods', async () => (await count()) === 2);
  });
}

const restartOf = (kind: string) => (kind === 'Job' ? 'Never' : 'Always');
