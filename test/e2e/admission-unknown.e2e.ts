import { expect } from 'chai';
import { expectSuccess } from '../../hack/cluster/client.ts';
import { listAt } from '../../hack/cluster/json.ts';
import { ours, runs, scheduledOn, taints, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, freshImage, GATE, gates, inSilence, onArch, patchesOf, required } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const QUICK = ['--images.fallbackAfter', '2s', '--images.cache.failureTtl', '1s', '--registries.timeout', '1s'];

describe('admission of what cannot be found out, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let places: Places;
  let controller: RunningController;
  let ns: string;
  let namespaces = 0;

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    webhook = await arrangeWebhook(world);
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });
  beforeEach(async () => {
    ns = await world.namespace(`unknown-${++namespaces}`);
  });
  afterEach(() => world.stopControllers());

  async function run(...flags: readonly string[]): Promise<RunningController> {
    const lease = ['--leaderElection.leaseDuration', '3s', '--bootstrap.timeout', '2s'];
    controller = await world.run([...webhook.flags, '--placement.mode', 'both', ...lease, ...flags]);
    await eventuallyTrusted(world);
    await world.eventually('it to lead', async () => (await controller.metric('archaware_leader')) === 1);
    return controller;
  }
  const isGated = async (name: string) => gates(await world.get('Pod', ns, name)).includes(GATE);
  const gatedPod = async (name: string, images: readonly string[]) =>
    expect(gates(await admit(world, pod(ns, name, { images })))).to.deep.equal([GATE]);
  const released = (name: string) =>
    world.eventually('the gate to go', async () => {
      const found = await world.get('Pod', ns, name);
      return gates(found).length === 0 && found;
    });
  const failures = (code: string) => controller.metric('archaware_image_resolutions_total', { result: code });

  it('opens pods images.fallbackAfter after the first failure, be it an error or silence, within what is known', async () => {
    await run(...QUICK);
    await gatedPod('missing', [world.image('nope')]);
    await gatedPod('half', [world.image('nope'), world.image('arm64')]);
    await world.eventuallyEvent(ns, 'ImageUnresolvable', /not-found/);
    const open = await released('missing');
    // Not required: it could never be widened when an architecture joins.
    expect([tolerations(open), affinity(open)]).to.deep.equal([ours('amd64', 'arm64'), undefined]);
    const half = await released('half');
    expect([tolerations(half), affinity(half)]).to.deep.equal([
      ours('arm64'),
      { nodeAffinity: required([onArch('arm64')]) },
    ]);
    await world.eventuallyEvent(ns, 'OpenPlacement', /images.unresolvable: open/);

    await inSilence(world, async () => {
      await gatedPod('unanswered', [world.image('multi')]);
      expect(affinity(await released('unanswered'))).to.equal(undefined);
    });
    await world.eventuallyEvent(ns, 'ImageUnresolvable', /timeout/);
    for (const name of ['missing', 'half', 'unanswered']) {
      await world.eventually(`${name} to run`, async () => runs(await world.get('Pod', ns, name)));
    }
    expect(await patchesOf(world, ns, 'missing')).to.equal(1);
  });

  it('falls back to the architectures that the operator named', async () => {
    await run(...QUICK, '--images.unresolvable', 'fallback', '--architectures.fallback', 'arm64');
    await gatedPod('missing', [world.image('nope')]);
    const found = await released('missing');
    expect(affinity(found)).to.deep.equal({ nodeAffinity: required([onArch('arm64')]) });
    expect(tolerations(found)).to.deep.equal(ours('arm64'));
    await world.eventuallyEvent(ns, 'OpenPlacement', /images.unresolvable: fallback/);
  });

  it('keeps the gate with images.unresolvable: wait, until the configuration says otherwise', async () => {
    const configure = async (unresolvable: string) => {
      const config = { images: { unresolvable, fallbackAfter: '0s', cache: { failureTtl: '1s' } } };
      return `${await places.mount('etc', { 'config.yaml': JSON.stringify(config) })}/config.yaml`;
    };
    await run('--config', await configure('wait'));
    await gatedPod('missing', [world.image('nope')]);
    await world.eventually('it to be asked for again', async () => (await failures('not-found')) >= 3);
    expect(await isGated('missing')).to.equal(true);
    expect(await controller.metric('archaware_gated_pods')).to.equal(1);
    await configure('open');
    await released('missing');
    await world.eventually('it to run', async () => runs(await world.get('Pod', ns, 'missing')));
  });

  it('releases by a changed configuration what was held for want of a common architecture', async () => {
    const configure = async (noCommonArchitecture: string) => {
      const config = { policies: [{ name: 'all', noCommonArchitecture }] };
      return `${await places.mount('torn', { 'config.yaml': JSON.stringify(config) })}/config.yaml`;
    };
    await run('--config', await configure('hold'));
    await gatedPod('torn', [await freshImage(world, 'amd64'), world.image('arm64')]);
    await world.eventuallyEvent(ns, 'NoCommonArchitecture', /^policy all: no architecture/);
    expect(await isGated('torn')).to.equal(true);
    await configure('release');
    await world.eventually('it to run', async () => runs(await world.get('Pod', ns, 'torn')));
  });

  it('releases what a controller gated that was killed, once there is one again', async () => {
    const image = await freshImage(world, 'arm64');
    await inSilence(world, async () => {
      await run();
      await gatedPod('first', [image]);
      await world.create(deployment(ns, 'more', { images: [image], replicas: 3 }));
      await world.eventually('all to be gated', async () => {
        const pods = await world.pods(ns, 'more');
        return pods.length === 3 && pods.every((found) => gates(found).includes(GATE));
      });
      await world.stopControllers('SIGKILL');
    });
    // Nobody is there: what comes now passes, and what is gated stays so.
    expect(gates(await admit(world, pod(ns, 'meanwhile', { images: [image] })))).to.deep.equal([]);
    expect(await isGated('first')).to.equal(true);
    await run();
    for (const found of [await released('first'), ...(await world.pods(ns, 'more'))]) {
      expect(await patchesOf(world, ns, String(Object(Object(found).metadata).name))).to.be.at.most(1);
    }
    await world.eventually('all to run on the right node', async () => {
      const pods = await world.list('Pod', ns);
      return pods.length === 5 && pods.every((found) => runs(found) && scheduledOn(found) === 'arm64-1');
    });
  });

  it('goes without the webhook: pods pass, and the loops still give them tolerations', async () => {
    const elsewhere = ['--webhook.enabled', '--webhook.address', '127.0.0.1:0'];
    await world.run([...elsewhere, '--placement.mode', 'both', '--bootstrap.timeout', '2s']);
    const found = await admit(world, pod(ns, 'passed', { images: [await freshImage(world, 'arm64')] }));
    expect(gates(found)).to.deep.equal([]);
    await world.eventuallyTolerates(ns, 'passed', ours('arm64'));
    await world.eventually('it to run', async () => runs(await world.get('Pod', ns, 'passed')));
    expect(scheduledOn(await world.get('Pod', ns, 'passed'))).to.equal('arm64-1');
    await world.stopControllers();
    // With affinity alone nothing keeps it from a wrong node, but it gets an Event once it cannot be pulled there.
    await world.run([...elsewhere, '--placement.mode', 'affinity']);
    const nodeSelector = { 'kubernetes.io/hostname': 'amd64-1' };
    await world.eventually(
      'the nodes to be untainted',
      async () => (await world.list('Node', '')).flatMap(taints).length === 0,
    );
    await world.create(pod(ns, 'wrong', { images: [world.image('arm64')], spec: { nodeSelector } }));
    const wrong = await world.eventually('it to run', async () => {
      const pod = await world.get('Pod', ns, 'wrong');
      return runs(pod) && pod;
    });
    const message = 'no match for platform in manifest sha256:41c7: not found';
    const containerStatuses = listAt(wrong, 'status', 'containerStatuses').map((status) => ({
      ...(typeof status === 'object' ? status : {}),
      ...{ ready: false, started: false, state: { waiting: { reason: 'ErrImagePull', message } } },
    }));
    const path = `${pathOf('Pod', ns, 'wrong')}/status`;
    expectSuccess('its status', await world.cluster.request('PATCH', path, { status: { containerStatuses } }));
    await world.eventuallyEvent(ns, 'WrongNode', /arm64/);
  });
});
