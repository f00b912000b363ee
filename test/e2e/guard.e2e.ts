import { expect } from 'chai';
import type { Client } from '../../hack/cluster/client.ts';
import { at } from '../../hack/cluster/json.ts';
import { hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { manifestOf130 } from '../support/manifest.ts';
import { annotation, ours, runs, taints, tolerations } from '../support/objects.ts';
import { arrangeWebhook, WEBHOOKS } from '../support/webhook.ts';
import { daemonSet, pod } from '../support/workloads.ts';
import { type Attempt, add, connectAsAccount } from './support/account.ts';
import {
  NODE_AS_IT_IS,
  NODES_ALLOWED,
  NODES_ALLOWED_BY_FORM,
  NODES_ALLOWED_WITHOUT_DOMAINS,
  NODES_REFUSED,
} from './support/guard-node-rows.ts';
import { describeKeep, describeKeepPods, policyNames, probeAsAccount, typeWarnings } from './support/guard-policies.ts';
import * as rows from './support/guard-rows.ts';
import { WAYS, WAYS_NS } from './support/guard-way-rows.ts';
import { WEBHOOK_ALLOWED, WEBHOOK_CLIENTS, WEBHOOK_REFUSED } from './support/guard-webhook-rows.ts';
import { type Kubelet, kubeletOf } from './support/kubelet.ts';
import { GATE, onArch } from './support/placed.ts';
import { type LiveWorld, startWorld, type WorldOptions } from './support/world.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const SECRETS = '/api/v1/namespaces/archaware/secrets';
const CONFIG_MAPS = '/api/v1/namespaces/archaware/configmaps';
const OWN = 'archaware-controller-webhook';
const EVENTS = `/apis/events.k8s.io/v1/namespaces/${rows.NS}/events`;

/** So many tolerations of others. */
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ key: `example.com/${index}`, operator: 'Exists' }));

const LABELS = ['accelerators', 'kubernetes.io'];
type Form = {
  readonly form: string;
  readonly options: WorldOptions;
  /** What this form of the policy for nodes lets through, and what it does not, in addition to what all forms do. */
  readonly allowed: readonly Attempt[];
  readonly refused: readonly Attempt[];
};
/** As the single manifests and the overlays have them, and as the chart does by default. */
const FORMS: readonly Form[] = [
  {
    form: 'by form, as the manifest for 1.30 has them',
    options: {
      manifest: await manifestOf130(),
      // The oldest version that 1.37 can emulate; it has no MutatingAdmissionPolicies.
      cluster: hasMutatingPolicies() ? { apiServerArgs: ['--emulated-version=1.34'] } : {},
    },
    allowed: [...NODES_ALLOWED_BY_FORM, ...NODES_ALLOWED_WITHOUT_DOMAINS],
    refused: [],
  },
  {
    form: 'by form, but for the domains of labels',
    options: { guard: { labels: LABELS } },
    allowed: NODES_ALLOWED_BY_FORM,
    refused: NODES_ALLOWED_WITHOUT_DOMAINS,
  },
  {
    form: 'pinned',
    options: {
      guard: { labels: LABELS, taints: ['supported-arch:NoSchedule'], nodeLabels: [] },
      cluster: { apiServerArgs: ['--disable-admission-plugins=DefaultTolerationSeconds'] },
    },
    allowed: [],
    refused: [...NODES_ALLOWED_BY_FORM, ...NODES_ALLOWED_WITHOUT_DOMAINS],
  },
];

for (const { form, options, ...nodes } of FORMS) {
  describe(`the policies that hold our service account to its job, ${form}, on the real control plane`, () => {
    let world: LiveWorld;
    let account: Client;
    type Requests = Pick<Client, 'request'>;
    const told = async (method: 'PATCH' | 'POST', path: string, sent: unknown, client: Requests = account) => {
      const { status, body } = await client.request(method, path, sent);
      return { status, message: String(at(body, 'message') ?? '') };
    };
    const answer = ([, path, patch]: Attempt, client?: Requests) =>
      told('PATCH', `${path}?dryRun=All&fieldManager=archaware-controller`, patch, client);
    const created = (path: string, object: object) => told('POST', `${path}?dryRun=All`, object);
    const ALLOWED = { status: 200, message: '' };
    /** By the policy for the kind, with these words. */
    const expectRefused = ({ status, message }: typeof ALLOWED, kind: string, words = '') => {
      expect(message).to.include(`ValidatingAdmissionPolicy 'archaware-guard-${kind}'`).and.include(words);
      expect(status).to.equal(422);
    };

    const KINDS: readonly [kind: string, allowed: readonly Attempt[], refused: readonly Attempt[]][] = [
      ['pods', rows.PODS_ALLOWED, rows.PODS_REFUSED],
      ['nodes', [...NODES_ALLOWED, ...nodes.allowed], [...NODES_REFUSED, ...nodes.refused]],
      ['daemonsets', rows.SETS_ALLOWED, rows.SETS_REFUSED],
      ['namespaces', rows.SPACES_ALLOWED, rows.SPACES_REFUSED],
      ['webhook', WEBHOOK_ALLOWED, WEBHOOK_REFUSED],
    ];

    before(async () => {
      world = await startWorld(options);
      for (const namespace of [rows.NS, WAYS_NS]) await world.namespace(namespace);
      await world.create(...rows.OBJECTS);
      await world.patch('DaemonSet', rows.NS, 'agent', { metadata: { annotations: rows.RECORDED } });
      for (const [name, object] of rows.SPACES) await world.patch('Namespace', '', name, object);
      await world.patch('Node', '', 'amd64-1', NODE_AS_IT_IS);
      await arrangeWebhook(world);
      await world.patch(WEBHOOKS, WEBHOOK_CLIENTS);
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
            expect(await answer(attempt)).to.deep.equal(ALLOWED);
          });
        }
        for (const attempt of refused) {
          it(`does not let it ${attempt[0]}`, async () => expectRefused(await answer(attempt), kind));
        }
        it('concerns nobody else', async () => {
          for (const attempt of refused) {
            const { message } = await answer(attempt, world.cluster);
            expect(message, attempt[0]).not.to.include('archaware-guard');
          }
        });
      });
    }

    /** The manifest for 1.30 has the webhook in the place of this policy. */
    const hasKeep = options.manifest === undefined && hasMutatingPolicies();
    it('are all tried here, and the API server finds nothing wrong with their expressions', async () => {
      const guards = [...KINDS.map(([kind]) => kind), 'secrets', 'leases', 'status'].map(
        (kind) => `archaware-guard-${kind}`,
      );
      expect(await policyNames(world)).to.have.members([
        ...guards,
        ...(hasKeep ? ['archaware-keep', 'archaware-keep-pods'] : []),
      ]);
      expect(await typeWarnings(world)).to.deep.equal([]);
    });

    it('let it try by a dry run whether its tolerations in DaemonSets are protected', async () => {
      const { status, message, tolerations: left } = await probeAsAccount(world, account, rows.NS, 'agent');
      expect(message).to.equal('');
      expect(status).to.equal(200);
      const isBack = left.filter((text) => text === 'supported-arch=amd64:NoSchedule').length === 1;
      expect(isBack, left.join()).to.equal(hasKeep);
    });

    if (hasKeep && form !== FORMS.at(-1)?.form) {
      describeKeep(() => world);
      describeKeepPods(() => world);
    }

    for (const { title, kind, path, make, steps } of WAYS) {
      it(`does not let it, in several requests, ${title}`, async () => {
        await make(world);
        const last = steps.length - 1;
        for (const [index, { by, patch }] of steps.entries()) {
          const [client, manager] = by === 'us' ? [account, 'archaware-controller'] : [world.cluster, 'others'];
          const answered = await told('PATCH', `${path}?fieldManager=${manager}`, patch, client);
          if (by === 'others') expect(answered).to.deep.equal(ALLOWED);
          if (index === last) expectRefused(answered, kind);
        }
      });
    }

    for (const count of [250, 300, 1_000, 4_000]) {
      it(`lets it narrow a pod with ${count} terms of node affinity, by nothing but what is ours`, async () => {
        const terms = Array.from({ length: count }, (_, index) => ({
          matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [`node-${index}`] }],
        }));
        const required = 'requiredDuringSchedulingIgnoredDuringExecution';
        const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
        const likes = terms.map((preference) => ({ weight: 1, preference }));
        const affinity = { nodeAffinity: { [required]: { nodeSelectorTerms: terms }, [preferred]: likes } };
        const spec = { schedulingGates: [{ name: GATE }], affinity };
        const name = `terms-${count}`;
        await world.create(pod(rows.NS, name, { images: ['registry.example.com/app:1'], spec }));
        const path = `/api/v1/namespaces/${rows.NS}/pods/${name}`;
        const narrow = (requirement: object) =>
          terms.map((_, index) =>
            add(`/spec/affinity/nodeAffinity/${required}/nodeSelectorTerms/${index}/matchExpressions/-`, requirement),
          );
        const rest = [
          add(`/spec/affinity/nodeAffinity/${preferred}/-`, rows.liking(onArch('arm64'))),
          { op: 'remove', path: '/spec/schedulingGates' },
        ];
        expect(await answer(['', path, [...narrow(onArch('amd64', 'arm64')), ...rest]])).to.deep.equal(ALLOWED);
        const wider = await answer(['', path, narrow({ ...onArch('amd64'), operator: 'NotIn' })]);
        expectRefused(wider, 'pods', 'only become narrower');
      });
    }

    for (const attempt of rows.PODS_IMPOSSIBLE) {
      it(`does not let it ${attempt[0]}, as nobody may`, async () => {
        expect((await answer(attempt)).status).to.equal(422);
      });
    }

    it('lets it serve a pod with thousands of tolerations', async () => {
      const tolerations = many(5_000);
      const spec = { schedulingGates: [{ name: 'example.com/others' }] };
      await world.create(pod(rows.NS, 'tolerant', { images: ['registry.example.com/app:1'], tolerations, spec }));
      const path = `/api/v1/namespaces/${rows.NS}/pods/tolerant`;
      expect(await answer(['', path, [add('/spec/tolerations/-', rows.own('amd64'))]])).to.deep.include({
        status: 200,
      });
      expect((await answer(['', path, [add('/spec/tolerations/-', { operator: 'Exists' })]])).status).to.equal(422);
    });

    it('lets it serve a DaemonSet with two thousand tolerations', async () => {
      await world.create(
        daemonSet(rows.NS, 'tolerant', { images: ['registry.example.com/app:1'], tolerations: many(2_000) }),
      );
      const path = `/apis/apps/v1/namespaces/${rows.NS}/daemonsets/tolerant`;
      const record = { [rows.NOTES]: JSON.stringify([rows.own('amd64')]) };
      const added = (toleration: object) => [
        add('/spec/template/spec/tolerations/-', toleration),
        add('/metadata/annotations', record),
      ];
      expect(await answer(['', path, added(rows.own('amd64'))])).to.deep.equal(ALLOWED);
      const refused = await answer(['', path, added({ operator: 'Exists' })]);
      expectRefused(refused, 'daemonsets', "only tolerations of archaware's taint");
    });

    if (form === 'pinned') {
      // The plug-in acts on updates too, so a pod that was created without it gets them in a request of archaware.
      it('lets a pod that has none get the tolerations of DefaultTolerationSeconds beside ours, and nothing more', async () => {
        const images = ['registry.example.com/app:1'];
        const spec = { schedulingGates: [{ name: 'example.com/others' }] };
        await world.create(pod(rows.NS, 'without', { images, spec }));
        const path = `/api/v1/namespaces/${rows.NS}/pods/without`;
        const given = (...list: readonly object[]) => answer(['', path, [add('/spec/tolerations', list)]]);
        expect(await given(...rows.STAYS, rows.own('amd64'))).to.deep.equal(ALLOWED);
        expect((await given(rows.away('not-ready'))).message).to.include("only tolerations of archaware's taint");
      });
    }

    it('lets it write the certificates, and no other Secret', async () => {
      const create = (name: string, type: string, annotations: object = {}) =>
        created(SECRETS, { apiVersion: 'v1', kind: 'Secret', type, metadata: { name, annotations } });
      expect(await create(OWN, 'Opaque')).to.deep.equal({ status: 201, message: '' });
      const token = { 'kubernetes.io/service-account.name': 'default' };
      expectRefused(await create('other', 'Opaque', token), 'secrets');
      expectRefused(await create(OWN, 'kubernetes.io/service-account-token', token), 'secrets');
    });

    it('lets it create its Lease, and no other', async () => {
      const LEASES = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases';
      const create = (metadata: object) =>
        created(LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata });
      expect(await create({ name: 'archaware-controller' })).to.deep.equal({ status: 201, message: '' });
      for (const metadata of [{ name: 'other' }, { generateName: 'archaware-controller' }])
        expectRefused(await create(metadata), 'leases');
    });

    it('lets it write its status, and no other ConfigMap, entry, label or annotation', async () => {
      const labels = { 'app.kubernetes.io/name': 'archaware-controller' };
      const data = { status: '{}' };
      const configMap = (metadata: object, more: object = { data }) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'archaware-controller-status', labels, ...metadata },
        ...more,
      });
      const path = `${CONFIG_MAPS}/archaware-controller-status`;
      const patched = (patch: object) => told('PATCH', `${path}?dryRun=All`, patch);
      const foreign = { grafana_dashboard: '1' };
      for (const object of [
        configMap({ name: 'other' }),
        configMap({ name: undefined, generateName: 'archaware-controller-status' }),
        configMap({ labels: { ...labels, ...foreign } }),
        configMap({ annotations: foreign }),
        configMap({ finalizers: ['example.com/stays'] }),
        configMap({}, { data: { ...data, 'config.yaml': '{}' } }),
        configMap({}, { data: { status: 'x'.repeat(32 * 1024 + 1) } }),
        configMap({}, { binaryData: { status: 'e30=' } }),
      ])
        expectRefused(await created(CONFIG_MAPS, object), 'status');
      expect(await told('POST', CONFIG_MAPS, configMap({}))).to.deep.equal({ status: 201, message: '' });
      // What others added stays, and is in nobody's way.
      await world.patch(path, { metadata: { labels: { team: 'a' }, annotations: { team: 'a' } } });
      expect(await patched({ metadata: { labels }, data: { status: '{"version":"1"}' } })).to.deep.include({
        status: 200,
      });
      for (const patch of [
        { metadata: { labels: foreign } },
        { metadata: { labels: { team: 'b' } } },
        { metadata: { annotations: { team: 'b' } } },
        { data: { status: null, other: 'x' } },
      ])
        expectRefused(await patched(patch), 'status');
    });

    const FORBIDDEN: readonly [title: string, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string][] = [
      ['patch Events', 'PATCH', `${EVENTS}/theirs`],
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
      ['create ConfigMaps elsewhere', 'POST', `/api/v1/namespaces/${rows.NS}/configmaps`],
      ['write other ConfigMaps', 'PATCH', `${CONFIG_MAPS}/archaware-controller`],
      ['delete other ConfigMaps', 'DELETE', `${CONFIG_MAPS}/archaware-controller`],
      ['read ConfigMaps', 'GET', '/api/v1/namespaces/archaware/configmaps/archaware-controller'],
      ['delete Events', 'DELETE', `${EVENTS}/theirs`],
      ['write Events of the older kind', 'POST', `/api/v1/namespaces/${rows.NS}/events`],
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

    // The manifest for 1.30 has the same policies as the second form.
    if (form !== FORMS[0]?.form) describeLies(() => world);
  });
}

function describeLies(worldOf: () => LiveWorld): void {
  describe('while the kubelet of a node lies', () => {
    let world: LiveWorld;
    const LIAR = 'liar-1';
    const NS = 'bystanders';
    const ALL = { 'archaware.dev/architectures': 'all' };
    let kubelet: Kubelet;
    const theirs = [
      { key: 'dedicated', value: 'payments', effect: 'NoSchedule' },
      { key: 'quarantine', value: 'compromised', effect: 'NoExecute' },
      { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' },
    ];
    const templateOf = async (name: string) => {
      const found = await world.get('DaemonSet', NS, name);
      return [at(found, 'metadata', 'generation'), ...tolerations(at(found, 'spec', 'template'))];
    };
    const eventuallyOnLiar = (architecture: string) =>
      world.eventually(`the taint of the liar to be ${architecture}`, async () => {
        const own = taints(await world.node(LIAR)).filter((text) => text.startsWith('supported-arch='));
        return own.join() === `supported-arch=${architecture}:NoSchedule`;
      });

    before(async () => {
      world = worldOf();
      await world.namespace(NS);
      await world.cluster.createNode({ name: LIAR, architecture: 'amd64', taints: theirs });
      kubelet = await kubeletOf(world, LIAR);
      await world.create(
        daemonSet(NS, 'all', { images: [world.image('nested')], annotations: ALL }),
        daemonSet(NS, 'never', { images: ['invented.example.com/x:1'], pullPolicy: 'Never' }),
      );
      await world.run(['--images.fallbackAfter', '2s']);
      await eventuallyOnLiar('amd64');
      for (const name of ['all', 'never']) {
        await world.eventually(`${name} to tolerate both`, async () => (await templateOf(name)).length === 3);
      }
    });
    after(async () => {
      await kubelet?.close();
      await world.stopControllers();
    });

    it('takes off no taint of others, whatever the record claims', async () => {
      expect(await kubelet.removeTaints()).to.include('is not allowed to modify taints');
      const own = 'supported-arch=amd64:NoSchedule';
      const claims = ['dedicated=payments:NoSchedule', 'quarantine=compromised:NoExecute'];
      await kubelet.record({
        taints: [own, ...claims, 'dedicated=amd64:NoSchedule', 'node-role.kubernetes.io/control-plane=:NoSchedule'],
      });
      await world.eventually('the record to be put right', async () => {
        return annotation(await world.node(LIAR), 'archaware.dev/managed') === JSON.stringify({ taints: [own] });
      });
      expect(taints(await world.node(LIAR))).to.have.members([
        own,
        ...claims,
        'node-role.kubernetes.io/control-plane=:NoSchedule',
      ]);
    });

    it('places what follows the cluster, and rolls nothing', async () => {
      const before = [await templateOf('all'), await templateOf('never')];
      for (const name of ['riscv64', 'evil-1', 'wasm32', 'zz2']) {
        await kubelet.report(name);
        await eventuallyOnLiar(name === 'wasm32' ? 'wasm' : name);
        const pods = ['any', 'local', 'lost'].map((kind) => `${kind}-${name}`);
        await world.create(
          pod(NS, `any-${name}`, { images: [world.image('nested')], annotations: ALL }),
          pod(NS, `local-${name}`, { images: ['local.example.com/x:1'], pullPolicy: 'Never' }),
          pod(NS, `lost-${name}`, { images: [world.image('nope')] }),
          daemonSet(NS, `local-set-${name}`, { images: ['local.example.com/y:1'], pullPolicy: 'Never' }),
        );
        for (const each of pods) await world.eventuallyTolerates(NS, each, ours('amd64', 'arm64'));
        await world.eventually('the DaemonSet to tolerate both', async () => {
          return (await templateOf(`local-set-${name}`)).slice(1).join() === ours('amd64', 'arm64').join();
        });
        await world.eventually('the pods to run', async () => {
          return (await Promise.all(pods.map((each) => world.get('Pod', NS, each)))).every(runs);
        });
        expect([await templateOf('all'), await templateOf('never')]).to.deep.equal(before);
      }
      await kubelet.report('amd64');
      await eventuallyOnLiar('amd64');
      expect(await world.events('default', 'NodeArchitectureChanged')).to.have.length.of.at.least(5);
      expect(await world.events(NS, 'WriteRefused')).to.deep.equal([]);
    });
  });
}
