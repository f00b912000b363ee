import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { at, listAt } from '../../hack/cluster/json.ts';
import { freePorts } from '../../hack/cluster/ports.ts';
import { binaries, hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { run } from '../../hack/programs.ts';
import { isGoing, nameOf, ours, runs, taints, tolerations, uidOf } from '../support/objects.ts';
import { bundlesOf, WEBHOOKS } from '../support/webhook.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { arrangeHelm, CHART_PATH, type Helm, needsHelm, RELEASE } from './support/helm.ts';
import { GATE, gates } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { refusals } from './support/refusals.ts';
import { worldForAll } from './support/world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CONFIG = '/api/v1/namespaces/archaware/configmaps/archaware-controller';
const CLEANING = 'archaware-controller-clean';
const DEVICE = 'feature.node.kubernetes.io/usb-ff_03e7_2485.present';
/** Servers before 1.36 do not have the mutating policies. */
const KINDS = [
  ...['serviceaccounts', 'configmaps', 'secrets', 'services', 'deployments', 'jobs', 'poddisruptionbudgets'],
  ...['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings', 'mutatingwebhookconfigurations'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  ...(hasMutatingPolicies() ? ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'] : []),
];

/** Everything at once. No node has such a name: kwok would run the replacement of archaware's pods, and end the Job at once. */
const VALUES = {
  config: { placement: { mode: 'both' }, webhook: { enabled: true } },
  nodeLabels: { shipped: true },
  nodeSelector: { 'kubernetes.io/hostname': 'nowhere' },
};

const COMMON = { nodeSelector: VALUES.nodeSelector };
/**
 * Each way of installing that can follow `both`, which leaves most and is uninstalled first. In the mode observe nothing may be
 * written, and the chart refuses it where something is left.
 */
const LATER: Readonly<Record<string, object>> = {
  taints: { config: { placement: { mode: 'taints' } } },
  affinity: { config: { placement: { mode: 'affinity' } } },
  'label rules alone': { config: { loops: ['labels'] }, nodeLabels: { shipped: true } },
  'taints of the provider': { config: { taints: { manage: false, key: 'kubernetes.io/arch' } } },
};
/** What kubectl apply does not delete when the mode changes. */
const LEFT_BEHIND = [
  WEBHOOKS,
  ...(hasMutatingPolicies() ? ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies'] : []).flatMap((kind) =>
    ['archaware-keep', 'archaware-keep-pods'].map((name) => `/apis/admissionregistration.k8s.io/v1/${kind}/${name}`),
  ),
];

/** The account is there before the chart: its token is requested first. helm takes over what is marked as its own. */
const BEFORE = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'archaware' } },
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: 'archaware-controller',
      namespace: 'archaware',
      labels: { 'app.kubernetes.io/managed-by': 'Helm' },
      annotations: { 'meta.helm.sh/release-name': 'archaware', 'meta.helm.sh/release-namespace': 'archaware' },
    },
  },
];

describe('helm, on the real control plane, in this order', () => {
  const world = worldForAll({ manifest: BEFORE.map((object) => stringify(object)).join('---\n') }, needsHelm);
  let helm: Helm;
  let places: Places;
  let flags: string[];
  let ns: string;
  let nodesBefore: unknown[];

  before(async () => {
    helm = await arrangeHelm(world.cluster.kubeconfig);
    places = await arrange(world);
    ns = await world.namespace('served');
    const taint = { key: 'dedicated', value: 'infra', effect: 'PreferNoSchedule' };
    await world.patch('Node', '', 'amd64-1', { metadata: { labels: { [DEVICE]: 'true' } }, spec: { taints: [taint] } });
    nodesBefore = await nodes();
  });
  after(() => helm?.remove());

  /** What of nodes is others' and must stay so. */
  const nodes = async () =>
    (await world.list('Node', '')).map((node) => ({
      name: nameOf(node),
      taints: listAt(node, 'spec', 'taints').map((taint) => `${at(taint, 'key')}=${at(taint, 'value')}`),
      labels: at(node, 'metadata', 'labels'),
      annotations: Object.keys(Object(at(node, 'metadata', 'annotations'))).sort(),
    }));
  const bundles = () => bundlesOf(world);
  const paths = async () =>
    listAt(await world.get(WEBHOOKS), 'webhooks').map((hook) => String(at(hook, 'clientConfig', 'service', 'path')));

  it('installs, and upgrades from the chart of the previous commit where there is one', async () => {
    const archive = `git archive HEAD~1 manifests/helm/archaware-controller | tar -x -C ${places.directory}`;
    await run('bash', ['-o', 'pipefail', '-c', archive], { cwd: ROOT }).catch(() => undefined);
    const chart = join(places.directory, 'manifests/helm/archaware-controller');
    await helm.must(['install', ...RELEASE, existsSync(chart) ? chart : CHART_PATH], VALUES);
    const notes = await helm.must(['upgrade', ...RELEASE, CHART_PATH], VALUES);
    expect(notes).to.include('placement.mode: both, loops: nodes, pods, daemonsets, labels');
    expect(notes).not.to.include('WARNING');
    const policy = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/archaware-keep';
    const { status } = await world.cluster.request('GET', policy);
    expect(status, 'found out whether the server knows the kind').to.equal(hasMutatingPolicies() ? 200 : 404);
  });

  it('runs with the rights and the configuration of the chart', async () => {
    const [configuration, rules] = await Promise.all([world.get(CONFIG), world.get(`${CONFIG}-labels-accelerators`)]);
    const texts = Object.entries(Object(at(rules, 'data'))).map(([rule, text]) => [rule, String(text)] as const);
    await places.mount('labels/accelerators', Object.fromEntries(texts));
    const [port = 0] = await freePorts(1);
    flags = [
      ...['--config', await places.file('config.yaml', String(at(configuration, 'data', 'config.yaml')))],
      ...['--nodeLabels.directory', `${places.directory}/labels`],
      // Nobody calls the webhook here, as no pod of the Service runs.
      ...['--webhook.address', `127.0.0.1:${port}`],
    ];
    await world.run(flags);
    await world.create(
      pod(ns, 'multi', { images: [world.image('multi')] }),
      daemonSet(ns, 'agent', { images: [world.image('multi')] }),
    );
    await world.eventuallyTolerates(ns, 'multi', ours('amd64', 'arm64'));
    await world.eventuallyTainted();
    const label = async () => at(await world.node('amd64-1'), 'metadata', 'labels', 'accelerators/ncs2') === 'true';
    await world.eventually('the label', label);
    await world.eventually('the caBundle', async () => (await bundles()).every((bundle) => bundle !== undefined));
  });

  it('names commands in its notes that work: those of its pod with its rights, those that read as somebody pastes them', async () => {
    const given = [VALUES, ...['affinity', 'observe'].map((mode) => ({ config: { placement: { mode } } }))];
    const dry = (values: object) => helm.must(['upgrade', ...RELEASE, CHART_PATH, '--dry-run=client'], values);
    const notes = (await Promise.all(given.map(dry))).map((text) => text.slice(text.lastIndexOf('NOTES:'))).join('\n');
    for (const [, words = ''] of notes.matchAll(/^ {2}kubectl -n archaware exec deploy\S+ -- archaware (.*)$/gm)) {
      const { code, stdout, stderr } = await world.command([...words.split(' '), ...flags.slice(0, 2)]);
      expect(code, `${words}: ${stdout}${stderr}`).to.equal(words.startsWith('plan') ? 0 : 2);
    }
    const lines = [...notes.matchAll(/^ {2}kubectl get .*$/gm)].join('\n');
    const env = {
      HOME: places.directory,
      KUBECONFIG: world.cluster.kubeconfig,
      PATH: `${binaries()}:${process.env.PATH}`,
    };
    expect(await run('bash', ['-e', '-c', lines], { env })).to.match(/^served +agent +amd64,arm64$/m);
  });

  it('upgrades and leaves alone what the program wrote', async () => {
    const before = await bundles();
    const path = (await paths())[0];
    expect(path).to.match(/^\/mutate\/[0-9a-f]{40}$/);
    await helm.must(['upgrade', ...RELEASE, CHART_PATH], { ...VALUES, podAnnotations: { 'example.com/new': 'yes' } });
    const deployment = await world.get('Deployment', 'archaware', 'archaware-controller');
    expect(at(deployment, 'spec', 'template', 'metadata', 'annotations', 'example.com/new')).to.equal('yes');
    expect(await bundles()).to.deep.equal(before);
    expect(new Set(await paths())).to.deep.equal(new Set([path]));
    // A path in a stored revision would conflict with the leader's as soon as that changes, and helm rollback would fail.
    expect(await helm.must(['get', 'manifest', ...RELEASE])).not.to.match(/^ +(path: "?\/mutate|caBundle: )/m);
    await world.create(pod(ns, 'later', { images: [world.image('arm64')] }));
    await world.eventuallyTolerates(ns, 'later', ours('arm64'));
  });

  it('goes back by helm rollback, and leaves alone what the program wrote', async () => {
    const before = await bundles();
    await helm.must(['rollback', ...RELEASE]);
    const deployment = await world.get('Deployment', 'archaware', 'archaware-controller');
    expect(at(deployment, 'spec', 'template', 'metadata', 'annotations', 'example.com/new')).to.equal(undefined);
    expect(await bundles()).to.deep.equal(before);
    await world.create(pod(ns, 'after', { images: [world.image('amd64')] }));
    await world.eventuallyTolerates(ns, 'after', ours('amd64'));
  });

  it('uninstalls: the hook stops the Deployment, cleans, and nothing of ours is left', async () => {
    for (const name of ['multi', 'later', 'after']) await world.remove('Pod', ns, name);
    await uninstalled(flags);
    expect(await nodes()).to.deep.equal(nodesBefore);
    for (const kind of ['DaemonSet', 'Pod'] as const) {
      const notes = (await world.list(kind, ns)).map((object) => at(object, 'metadata', 'annotations'));
      expect(JSON.stringify(notes)).not.to.match(/archaware[.]dev/);
    }
  });

  for (const [mode, values] of Object.entries(LATER)) {
    it(`uninstalls from ${mode} what every other mode has left, and no workload loses a pod that could not come back`, async () => {
      const shop = await world.namespace(`from-${mode.replaceAll(' ', '-')}`);
      await helm.must(['install', ...RELEASE, CHART_PATH], VALUES);
      // Another account of the same name has another token.
      await world.cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
      await world.create(
        deployment(shop, 'camera', { images: [world.image('arm64')], replicas: 2 }),
        deployment(shop, 'web', { images: [world.image('multi')], replicas: 2 }),
        daemonSet(shop, 'agent', { images: [world.image('multi')] }),
      );
      await world.run(flags);
      await world.eventually('every trace of archaware', async () => {
        const pods = await world.list('Pod', shop);
        const isTainted = (await world.list('Node', '')).every((node) =>
          taints(node).some((text) => ours('amd64', 'arm64').includes(text)),
        );
        const isPlaced =
          pods.length === 6 && pods.every((one) => runs(one) && !isGoing(one) && tolerations(one).length > 0);
        return (
          isTainted && isPlaced && (await bundles()).every((bundle) => bundle !== undefined) && (await rolledOut(shop))
        );
      });
      await world.stopControllers();
      // A gate that the webhook added a moment ago, and what kubectl apply would leave behind.
      await world.create(
        pod(shop, 'gated', { images: [world.image('multi')], spec: { schedulingGates: [{ name: GATE }] } }),
      );
      const left = await Promise.all(LEFT_BEHIND.map(async (path) => ({ path, object: await world.get(path) })));
      await helm.must(['upgrade', ...RELEASE, CHART_PATH], { ...COMMON, ...values });
      for (const { path, object } of left) await leave(path, object);
      const cameras = async () => (await world.pods(shop, 'camera')).map(uidOf).sort();
      const before = await cameras();

      const config = await places.file('later.yaml', String(at(await world.get(CONFIG), 'data', 'config.yaml')));
      const from = await world.requestCount();
      await uninstalled(['--config', config, ...flags.slice(2)]);
      const writes = await world.writesSince(from);
      const gate = writes.findIndex((line) => line.includes('/pods/gated'));
      const webhook = writes.findIndex((line) => line.startsWith(`delete ${WEBHOOKS} `));
      expect(webhook, 'no new pod gets a gate after that').to.be.within(0, gate - 1);
      expect(await nodes()).to.deep.equal(nodesBefore);
      expect(await cameras()).to.deep.equal(before);
      for (const one of (await world.list('Pod', shop)).filter((each) => !isGoing(each))) {
        // The hook keeps pods, and what these tolerate is harmless. Pods of the DaemonSet are replaced with its template.
        const [owner] = nameOf(one).split('-');
        const kept = owner === 'camera' ? ours('arm64') : owner === 'web' ? ours('amd64', 'arm64') : [];
        expect(tolerations(one), nameOf(one)).to.deep.equal(kept);
        expect(gates(one)).to.deep.equal([]);
      }
      expect(JSON.stringify(await world.list('DaemonSet', shop))).not.to.match(/archaware[.]dev|supported-arch/);
      for (const { path } of left) expect((await world.cluster.request('GET', path)).status, path).to.equal(404);
      await world.cluster.kubectl(['delete', 'deployment,daemonset,pod', '--all', '-n', shop, '--wait=false']);
    });
  }

  /** Puts an object back that an upgrade has deleted. */
  async function leave(path: string, object: unknown): Promise<void> {
    if ((await world.cluster.request('GET', path)).status === 200) return;
    const { resourceVersion: _, uid: __, ...metadata } = Object(at(object, 'metadata'));
    const again = { ...Object(object), metadata };
    const { status } = await world.cluster.request('POST', path.replace(/\/[^/]+$/, ''), again);
    expect(status, path).to.equal(201);
  }

  const rolledOut = async (namespace: string) =>
    (await world.list('DaemonSet', namespace)).every(
      (one) => at(one, 'status', 'updatedNumberScheduled') === 2 && at(one, 'status', 'numberAvailable') === 2,
    );

  /** Uninstalls the release while it does what the kubelet would do for the pod of the hook. */
  async function uninstalled(given: readonly string[]): Promise<void> {
    // As somebody does who pastes the line of the notes.
    const [, line = ''] = /^Uninstalling: `helm ([^`]+)`/m.exec(await helm.must(['get', 'notes', ...RELEASE])) ?? [];
    const uninstalling = helm.must([...line.split(' '), '--timeout', '3m']);
    const hook = await world.eventually('the pod of the hook', async () =>
      (await world.list('Pod', 'archaware')).find((one) => isOfHook(one) && at(one, 'status', 'phase') !== 'Succeeded'),
    );
    const [container] = listAt(hook, 'spec', 'containers');
    expect(at(container, 'command')).to.deep.equal(['node', 'dist/main.js']);
    const args = listAt(container, 'args').map(String);
    const withoutConfig = args.filter((arg, index) => arg !== '--config' && args[index - 1] !== '--config');
    let ended = '';
    const cleaning = world.command([...withoutConfig, '--output', 'json', ...given]).then((result) => {
      ended = result.stderr;
      return result;
    });
    // The kubelet would end it.
    await world.eventually('no replica to be wanted', async () => {
      const found = await world.get('Deployment', 'archaware', 'archaware-controller');
      if (at(found, 'spec', 'replicas') === 0) return true;
      throw new Error(ended);
    });
    await world.stopControllers();
    const { code, stdout, stderr } = await cleaning;
    expect(code, stdout + stderr).to.equal(0);
    const status = `/api/v1/namespaces/archaware/pods/${nameOf(hook)}/status`;
    expect((await world.cluster.request('PATCH', status, { status: { phase: 'Succeeded' } })).status).to.equal(200);
    await uninstalling;

    const label = ['-l', 'app.kubernetes.io/instance=archaware'];
    const left = await world.cluster.kubectl(['get', KINDS.join(), '-A', ...label, '-o', 'name']);
    expect(left, left.stderr).to.deep.include({ code: 0, stdout: '' });
    for (const kind of ['secrets', 'leases']) {
      const found = await world.cluster.kubectl(['get', kind, '-n', 'archaware', '-o', 'name']);
      expect(found.stdout, kind).to.equal('');
    }
  }

  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    await world.stopControllers('SIGKILL');
    await helm.run(['uninstall', ...RELEASE, '--no-hooks', '--ignore-not-found']);
  });

  it('was refused nothing that it asked for', async () => {
    // `plan` of the notes asks whether pods would be let in, which the account may not.
    const asked = 'create /api/v1/namespaces/default/pods?dryRun=All';
    expect((await refusals(world.cluster)).filter((line) => !line.startsWith(asked))).to.deep.equal([]);
  });

  const isOfHook = (object: unknown) => at(object, 'metadata', 'labels', 'app.kubernetes.io/name') === CLEANING;
});
