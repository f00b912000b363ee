import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { runBundle } from '../support/controller-process.ts';
import { ours, taints as taintsOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';
import { mayAccount } from './support/account.ts';
import { arrangeHelm, CHART_PATH, type Helm, needsHelm } from './support/helm.ts';
import { buildOverlay, type Overlay } from './support/overlay.ts';
import { arrange, type Places } from './support/places.ts';
import { refusals } from './support/refusals.ts';
import { worldForAll } from './support/world.ts';

const OBSERVE = { config: { placement: { mode: 'observe' } } };
const NODE = 'amd64-1';
const TAINT = { key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' };
const GATE = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };

/** What the account of the overlay may do, and what it may not, as `verb resource`. */
const ALLOWED = [
  ...['list nodes', 'watch nodes', 'list namespaces', 'watch pods', 'list daemonsets.apps', 'get secrets'],
  ...['create events.events.k8s.io'],
];
const REFUSED = ['pods', 'nodes', 'daemonsets.apps', 'secrets', 'deployments.apps', 'namespaces'].flatMap((resource) =>
  ['create', 'patch', 'update', 'delete'].map((verb) => `${verb} ${resource}`),
);
const ALSO_REFUSED = [
  'patch events.events.k8s.io',
  'create pods/eviction',
  'create pods/binding',
  'patch mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'delete leases.coordination.k8s.io',
];

describe('the overlay observe and the chart, on the real control plane, in this order', () => {
  const world = worldForAll(async () => {
    overlay = await buildOverlay('observe');
    return { manifest: overlay.manifest };
  }, needsHelm);
  let places: Places;
  let helm: Helm;
  let overlay: Overlay;
  let flags: string[];
  let ns: string;
  let controller: RunningController;

  before(async () => {
    places = await arrange(world);
    helm = await arrangeHelm(world.cluster.kubeconfig);
    ns = await world.namespace('watched');
    flags = ['--config', await places.file('config.yaml', overlay.config), ...overlay.flags];
    controller = await world.run(flags);
  });
  after(() => helm?.remove());

  const ready = async () => (await controller.get('/readyz')).status;
  const template = () => {
    // The objects of the overlay are there already.
    const flagsOfHelm = ['--dry-run=server', '--take-ownership'];
    const command = ['template', 'archaware', CHART_PATH, '--namespace', 'archaware', ...flagsOfHelm];
    return helm.run(command, OBSERVE);
  };

  it('may read what it decides on, and write nothing but Events', async () => {
    const held: string[] = [];
    for (const right of [...ALLOWED, ...REFUSED, ...ALSO_REFUSED]) if (await mayAccount(world, right)) held.push(right);
    expect(held).to.have.members(ALLOWED);
  });

  it('refuses to be installed where a node has a taint of archaware', async () => {
    const annotations = { 'archaware.dev/managed': JSON.stringify({ taints: ours('amd64') }) };
    expect((await template()).code, 'before').to.equal(0);
    await world.patch('Node', '', NODE, { metadata: { annotations }, spec: { taints: [TAINT] } });
    await world.eventually('it to be not ready', async () => (await ready()) === 503);
    const { code, stderr } = await template();
    expect(code).not.to.equal(0);
    expect(stderr).to.match(
      /placement[.]mode: got observe, and the cluster has taints of archaware on 1 node\(s\) \(amd64-1\)/,
    );
    expect(await world.writesSince(0)).to.deep.equal([]);
  });

  it('refuses to be installed where a pod holds the gate of archaware', async () => {
    await world.create(pod(ns, 'gated', { images: [world.image('multi')], spec: GATE }));
    await world.eventually('it to be counted', async () => (await controller.metric('archaware_gated_pods')) === 1);
    // The overlay's own ConfigMap says that this mode runs already, and then the chart lists no pods.
    await world.cluster.kubectl(['-n', 'archaware', 'delete', 'configmap', 'archaware-controller']);
    expect((await template()).stderr).to.match(/the scheduling gate of archaware on 1 pod\(s\) \(watched\/gated\)/);
  });

  it('can be installed once clean has run', async () => {
    await world.stopControllers();
    const cleaning = ['clean', '--yes', '--kubeconfig', world.cluster.kubeconfig, ...flags];
    const { code, stdout, stderr } = await runBundle(cleaning);
    expect(code, stdout + stderr).to.equal(0);
    expect(taintsOf(await world.node(NODE))).to.deep.equal([]);
    const released = await world.get('Pod', ns, 'gated');
    expect(at(released, 'spec', 'schedulingGates')).to.equal(undefined);
    controller = await world.run(flags);
    expect(await ready()).to.equal(200);
    const rendered = await template();
    expect(rendered.code, rendered.stderr).to.equal(0);
  });

  it('was refused nothing, because it tried no write', async () => {
    expect(await refusals(world.cluster)).to.deep.equal([]);
    expect(await world.writesSince(0)).to.deep.equal([]);
  });

  it('switches to taints', async function () {
    if (!hasMutatingPolicies()) this.skip();
    await world.stopControllers();
    const after = await buildOverlay('taints');
    await world.cluster.apply(after.manifest);
    await world.run(['--config', await places.file('taints.yaml', after.config), ...after.flags]);
    await world.eventuallyTainted();
  });
});
