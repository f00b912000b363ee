import { expect } from 'chai';
import { type Client, expectSuccess } from '../../hack/cluster/client.ts';
import { at } from '../../hack/cluster/json.ts';
import { type Attempt, add, connectAsAccount } from './support/account.ts';
import { NODE_AS_IT_IS, NODES_ALLOWED, NODES_REFUSED } from './support/guard-node-rows.ts';
import * as rows from './support/guard-rows.ts';
import { WEBHOOK, WEBHOOK_ALLOWED, WEBHOOK_CLIENTS, WEBHOOK_REFUSED } from './support/guard-webhook-rows.ts';
import { arrangeWebhook } from './support/webhook.ts';
import { pod } from './support/workloads.ts';
import { startWorld, type World } from './support/world.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const SECRETS = '/api/v1/namespaces/archaware/secrets';
const OWN = 'archaware-controller-webhook';

describe('the policies that hold our service account to its job, on the real control plane', () => {
  let world: World;
  let account: Client;
  const answer = async ([, path, patch]: Attempt, client: Pick<Client, 'request'> = account) => {
    const { status, body } = await client.request(
      'PATCH',
      `${path}?dryRun=All&fieldManager=archaware-controller`,
      patch,
    );
    return { status, message: String(at(body, 'message') ?? '') };
  };

  const KINDS: readonly [kind: string, allowed: readonly Attempt[], refused: readonly Attempt[]][] = [
    ['pods', rows.PODS_ALLOWED, rows.PODS_REFUSED],
    ['nodes', NODES_ALLOWED, NODES_REFUSED],
    ['daemonsets', rows.SETS_ALLOWED, rows.SETS_REFUSED],
    ['webhook', WEBHOOK_ALLOWED, WEBHOOK_REFUSED],
  ];

  before(async () => {
    world = await startWorld({ guard: { labels: ['accelerators', 'kubernetes.io'] } });
    await world.namespace(rows.NS);
    await world.create(...rows.OBJECTS);
    await world.patch('DaemonSet', rows.NS, 'agent', { metadata: { annotations: rows.RECORDED } });
    await world.patch('Node', '', 'amd64-1', NODE_AS_IT_IS);
    await arrangeWebhook(world);
    expectSuccess('the patch', await world.cluster.request('PATCH', WEBHOOK, WEBHOOK_CLIENTS));
    account = await connectAsAccount(world);
    // The API server learns of rights and policies a moment after they were applied.
    for (const [attempt] of KINDS.map(([, , refused]) => refused)) {
      await world.eventually('the policy', async () => attempt && /admission/i.test((await answer(attempt)).message));
    }
  });
  after(async () => {
    await account?.close();
    await world?.stop();
  });

  for (const [kind, allowed, refused] of KINDS) {
    describe(kind, () => {
      for (const attempt of allowed) {
        it(`lets it ${attempt[0]}`, async () => {
          expect(await answer(attempt)).to.deep.equal({ status: 200, message: '' });
        });
      }
      for (const attempt of refused) {
        it(`does not let it ${attempt[0]}`, async () => {
          const { status, message } = await answer(attempt);
          expect(message).to.include(`ValidatingAdmissionPolicy 'archaware-guard-${kind}'`);
          expect(status).to.equal(422);
        });
      }
      it('concerns nobody else', async () => {
        for (const attempt of refused) {
          const { message } = await answer(attempt, world.cluster);
          expect(message, attempt[0]).not.to.include('archaware-guard');
        }
      });
    });
  }

  for (const attempt of rows.PODS_IMPOSSIBLE) {
    it(`does not let it ${attempt[0]}, as nobody may`, async () => {
      expect((await answer(attempt)).status).to.equal(422);
    });
  }

  it('lets it serve a pod with a thousand tolerations', async () => {
    const tolerations = Array.from({ length: 1_000 }, (_, index) => ({
      key: `example.com/${index}`,
      operator: 'Exists',
    }));
    const spec = { schedulingGates: [{ name: 'example.com/others' }] };
    await world.create(pod(rows.NS, 'tolerant', { images: ['registry.example.com/app:1'], tolerations, spec }));
    const path = `/api/v1/namespaces/${rows.NS}/pods/tolerant`;
    expect(await answer(['', path, [add('/spec/tolerations/-', rows.own('amd64'))]])).to.deep.include({ status: 200 });
    expect((await answer(['', path, [add('/spec/tolerations/-', { operator: 'Exists' })]])).status).to.equal(422);
  });

  it('lets it write the certificates, and no other Secret', async () => {
    const create = async (name: string, type: string, annotations: object = {}) => {
      const object = {
        apiVersion: 'v1',
        kind: 'Secret',
        type,
        metadata: { name, namespace: 'archaware', annotations },
      };
      const { status, body } = await account.request('POST', `${SECRETS}?dryRun=All`, object);
      return { status, message: String(at(body, 'message') ?? '') };
    };
    expect(await create(OWN, 'Opaque')).to.deep.equal({ status: 201, message: '' });
    const token = { 'kubernetes.io/service-account.name': 'default' };
    for (const [name, type] of [
      ['other', 'Opaque'],
      [OWN, 'kubernetes.io/service-account-token'],
    ] as const) {
      const { status, message } = await create(name, type, token);
      expect(message).to.include("ValidatingAdmissionPolicy 'archaware-guard-secrets'");
      expect(status).to.equal(422);
    }
  });

  const FORBIDDEN: readonly [title: string, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string][] = [
    ['create pods', 'POST', '/api/v1/namespaces/archaware/pods'],
    ['delete pods', 'DELETE', `/api/v1/namespaces/${rows.NS}/pods/plain`],
    ['bind pods', 'POST', `/api/v1/namespaces/${rows.NS}/pods/plain/binding`],
    ['run commands in pods', 'POST', `/api/v1/namespaces/${rows.NS}/pods/plain/exec?command=sh`],
    ['add ephemeral containers', 'PATCH', `/api/v1/namespaces/${rows.NS}/pods/plain/ephemeralcontainers`],
    ['write the status of pods', 'PATCH', `/api/v1/namespaces/${rows.NS}/pods/plain/status`],
    ['write the status of nodes', 'PATCH', '/api/v1/nodes/amd64-1/status'],
    ['delete nodes', 'DELETE', '/api/v1/nodes/amd64-1'],
    ['create DaemonSets', 'POST', `/apis/apps/v1/namespaces/${rows.NS}/daemonsets`],
    ['delete DaemonSets', 'DELETE', `/apis/apps/v1/namespaces/${rows.NS}/daemonsets/agent`],
    ['write to Deployments', 'PATCH', '/apis/apps/v1/namespaces/archaware/deployments/archaware-controller'],
    ['list Secrets', 'GET', `/api/v1/namespaces/${rows.NS}/secrets`],
    ['write other Secrets', 'PATCH', `${SECRETS}/other`],
    ['read ConfigMaps', 'GET', '/api/v1/namespaces/archaware/configmaps/archaware-controller'],
    ['ask for tokens', 'POST', '/api/v1/namespaces/archaware/serviceaccounts/default/token'],
    ['create webhooks', 'POST', `${ADMISSION}/mutatingwebhookconfigurations`],
    ['change other webhooks', 'PATCH', `${ADMISSION}/mutatingwebhookconfigurations/other`],
    ['change the policies', 'PATCH', `${ADMISSION}/validatingadmissionpolicies/archaware-guard-pods`],
    ['delete their bindings', 'DELETE', `${ADMISSION}/validatingadmissionpolicybindings/archaware-guard-pods`],
    ['change its roles', 'PATCH', '/apis/rbac.authorization.k8s.io/v1/clusterroles/archaware-controller'],
    ["take others' leases", 'PATCH', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler'],
  ];
  for (const [title, method, path] of FORBIDDEN) {
    it(`has no right to ${title}`, async () => {
      const body = method === 'PATCH' ? [] : method === 'POST' ? {} : undefined;
      expect((await account.request(method, path, body)).status).to.equal(403);
    });
  }
});
