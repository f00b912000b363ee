import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { ours, runs, scheduledOn, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { arrange, imageAt, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const BOTH = ours('amd64', 'arm64');
const SUCCESS = 'archaware_config_reload_success';

describe('a changed configuration, on the real control plane', () => {
  let world: LiveWorld;
  let places: Places;
  let controller: RunningController;
  let file: string;

  /** As the kubelet mounts archaware's ConfigMap: links behind `..data`, which is swapped. */
  const configure = async (configuration: unknown) => {
    file = `${await places.mount('etc', { 'config.yaml': JSON.stringify(configuration) })}/config.yaml`;
  };
  const accepted = (by: RunningController, value: 0 | 1) =>
    world.eventually(`the metric to be ${value}`, async () => (await by.metric(SUCCESS)) === value);
  const torn = () => ({ images: [world.image('amd64'), world.image('arm64')] });

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    await configure({});
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });
  beforeEach(async () => {
    await configure({});
    controller = await world.run(['--config', file, '--leaderElection.leaseDuration', '3s']);
  });
  afterEach(() => world.stopControllers());

  it('releases the pods of a Deployment by a policy for their namespace, and touches no others', async () => {
    const [gold, other] = [await world.namespace('gold', { tier: 'gold' }), await world.namespace('silver')];
    await world.create(deployment(gold, 'torn', { ...torn(), replicas: 2 }), pod(other, 'torn', torn()));
    await world.create(pod(other, 'placed', { images: [world.image('multi')] }));
    await world.eventuallyTolerates(other, 'placed', BOTH);
    await world.eventuallyEvent(gold, 'NoCommonArchitecture', /^no architecture/);
    await world.eventuallyEvent(other, 'NoCommonArchitecture', /^no architecture/);
    const from = await world.requestCount();
    await configure({
      policies: [{ name: 'gold', namespaceSelector: 'tier=gold', noCommonArchitecture: 'release' }],
    });
    await world.eventually('both pods to run', async () => {
      const pods = await world.pods(gold, 'torn');
      return pods.length === 2 && pods.every(runs);
    });
    await world.eventuallyEvent(gold, 'OpenPlacement', /^policy gold: /);
    expect(tolerations(await world.get('Pod', other, 'torn'))).to.deep.equal([]);
    const writes = await world.writesSince(from);
    expect(writes).to.have.lengthOf(2);
    for (const write of writes) expect(write).to.match(/^patch .*\/namespaces\/gold\/pods\/torn-/);
  });

  it('gives a DaemonSet exactly the architectures of its policy, and rolls it onto their nodes', async () => {
    const ns = await world.namespace('daemons');
    await world.create(daemonSet(ns, 'agent', { images: [world.image('multi')] }));
    const places = async () => (await world.pods(ns, 'agent')).map(scheduledOn).sort();
    await world.eventually('a pod on each node', async () => (await places()).join() === 'amd64-1,arm64-1');
    await configure({ policies: [{ name: 'arm', podSelector: 'app=agent', schedulable: ['arm64'] }] });
    await world.eventually('the template to tolerate arm64 alone', async () => {
      const set = await world.get('DaemonSet', ns, 'agent');
      return tolerations(at(set, 'spec', 'template')).join() === ours('arm64').join();
    });
    await world.eventually('one pod, on the node of arm64', async () => (await places()).join() === 'arm64-1');
  });

  it('is refused by every replica while it is invalid, with an Event about the Lease, until it is corrected', async () => {
    const second = await world.run(['--config', file, '--leaderElection.leaseDuration', '3s']);
    const ns = await world.namespace('refused');
    await world.create(pod(ns, 'torn', torn()));
    await world.eventuallyEvent(ns, 'NoCommonArchitecture', /no architecture/);
    const unknown = Object.fromEntries(Array.from({ length: 19 }, (_, index) => [`no-such-key-${index}`, index]));
    await configure({ ...unknown, policies: [{ name: 'release', noCommonArchitecture: 'drop' }] });
    const note = await world.eventuallyEvent(
      'archaware',
      'ConfigurationRejected',
      /^refused, so the last valid configuration stays in use: /,
    );
    expect(note).to.match(/: no-such-key-0: unknown key .*; no-such-key-1: unknown key .*…$/);
    expect(Buffer.byteLength(note)).to.be.at.most(1024);
    const all = await world.eventually('the log', async () =>
      controller.logs().find((line) => line.includes('configuration refused')),
    );
    expect(all).to.contain('no-such-key-18').and.to.contain('policies[0].noCommonArchitecture: got \\"drop\\"');
    await accepted(controller, 0);
    await accepted(second, 0);
    expect(tolerations(await world.get('Pod', ns, 'torn'))).to.deep.equal([]);

    await configure({ policies: [{ name: 'release', noCommonArchitecture: 'release' }], taints: { key: 'other' } });
    await world.eventuallyTolerates(ns, 'torn', BOTH);
    await accepted(controller, 1);
    await accepted(second, 1);
    expect(controller.logs().find((line) => line.includes('needs a restart'))).to.contain('"taints.key"');
    // The next leader uses it as well.
    await controller.stop();
    await world.create(pod(ns, 'torn-too', torn()));
    await world.eventuallyTolerates(ns, 'torn-too', BOTH);
  });

  it('asks the mirrors that it names for images that are waited for', async () => {
    const front = await places.front();
    front.answerWith(503);
    world.allowInsecure(front.host);
    await world.stopControllers();
    controller = await world.run(['--config', file, '--images.fallbackAfter', '1h']);
    const ns = await world.namespace('mirrored');
    await world.create(pod(ns, 'waits', { images: [imageAt(front.host, 'multi')] }));
    await world.eventuallyEvent(ns, 'ImageUnresolvable', /503/);
    const mirror = await places.front();
    const mirrors = { [front.host]: { endpoints: [`http://${mirror.host}`], fallback: false } };
    await configure({ registries: { mirrors } });
    await world.eventuallyTolerates(ns, 'waits', BOTH);
    expect(mirror.requests()).to.not.deep.equal([]);
  });
});
