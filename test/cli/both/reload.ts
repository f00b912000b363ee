import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { folderForEach } from '../../support/folder.ts';
import { mount } from '../../support/mounted.ts';
import { ours, scheduledOn, tolerations } from '../../support/objects.ts';
import type { RunningController } from '../../support/running.ts';
import { daemonSet, deployment, pod } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import type { Start } from './context.ts';

const BOTH = ours('amd64', 'arm64');
const SUCCESS = 'archaware_config_reload_success';

export function describeReload(start: Start): void {
  describe('a changed configuration', () => {
    let world: World;
    let controller: RunningController;
    // Before the folder goes.
    afterEach(() => world.stopControllers());
    const folder = folderForEach();

    /** As the kubelet mounts archaware's ConfigMap: links behind `..data`, which is swapped. */
    const configure = async (configuration: unknown) => {
      await mount(folder.at(), { 'config.yaml': JSON.stringify(configuration) });
    };
    const accepted = (by: RunningController, value: 0 | 1) =>
      world.eventually(`the metric to be ${value}`, async () => (await by.metric(SUCCESS)) === value);
    const torn = () => ({ images: [world.image('amd64'), world.image('arm64')] });

    const run = () => world.run(['--config', folder.at('config.yaml'), '--leaderElection.leaseDuration', '3s']);

    before(async () => {
      world = await start();
    });
    after(() => world?.stop());
    beforeEach(async () => {
      await configure({});
      controller = await run();
    });

    it('releases the pods of a Deployment by a policy for their namespace, and touches no others', async () => {
      const [gold, other] = [await world.namespace('gold', { tier: 'gold' }), await world.namespace('silver')];
      await world.create(deployment(gold, 'torn', { ...torn(), replicas: 2 }), pod(other, 'torn', torn()));
      await world.create(pod(other, 'placed', { images: [world.image('multi')] }));
      await world.eventuallyTolerates(other, 'placed', BOTH);
      await world.eventuallyEvent(gold, 'NoCommonArchitecture', /^no architecture/);
      await world.eventuallyEvent(other, 'NoCommonArchitecture', /^no architecture/);
      const before = (await world.written()).length;
      await configure({
        policies: [{ name: 'gold', namespaceSelector: 'tier=gold', noCommonArchitecture: 'release' }],
      });
      await world.eventuallyAllRun(gold, 'torn', 2);
      await world.eventuallyEvent(gold, 'OpenPlacement', /^policy gold: /);
      expect(tolerations(await world.get('Pod', other, 'torn'))).to.deep.equal([]);
      const writes = (await world.written()).slice(before);
      expect(writes).to.have.lengthOf(2);
      for (const write of writes) expect(write).to.match(/^PATCH .*\/namespaces\/gold\/pods\/torn-/);
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
      const second = await run();
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
      expect(note).to.match(/: no-such-key-0: unknown key .*no-such-key-1: unknown key .*…$/);
      expect(Buffer.byteLength(note)).to.be.at.most(1024);
      const all = await world.eventuallyLogged(controller, 'configuration refused');
      expect(all).to.contain('no-such-key-18').and.to.contain('policies[0].noCommonArchitecture: got \\"drop\\"');
      await accepted(controller, 0);
      await accepted(second, 0);
      expect(tolerations(await world.get('Pod', ns, 'torn'))).to.deep.equal([]);

      await configure({ policies: [{ name: 'release', noCommonArchitecture: 'release' }], taints: { key: 'other' } });
      await world.eventuallyTolerates(ns, 'torn', BOTH);
      await accepted(controller, 1);
      await accepted(second, 1);
      await world.eventuallyLogged(controller, 'needs a restart', '"taints.key"');
      // The next leader uses it as well.
      await controller.stop();
      await world.create(pod(ns, 'torn-too', torn()));
      await world.eventuallyTolerates(ns, 'torn-too', BOTH);
    });
  });
}
