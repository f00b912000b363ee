import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { nameOf, ours, taints, tolerations } from '../../support/objects.ts';
import type { RunningController } from '../../support/running.ts';
import { daemonSet, pod } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import type { Start } from './context.ts';

const OBSERVE = ['--placement.mode', 'observe'];
const GATE = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
const NODE = 'amd64-1';

export function describeObserve(start: Start): void {
  describe('placement.mode: observe, in this order', () => {
    let world: World;
    let controller: RunningController;
    let ns: string;
    before(async () => {
      world = await start({ manifest: 'observe' });
      ns = await world.namespace('watched');
      controller = await world.run(OBSERVE);
    });
    after(() => world?.stop());

    const isReady = async (status: number) => (await controller.get('/readyz')).status === status;

    it('decides, counts and writes Events, and keeps no pod from running', async () => {
      const [amd, arm] = [world.image('amd64'), world.image('arm64')];
      await world.create(
        pod(ns, 'multi', { images: [world.image('multi')] }),
        pod(ns, 'torn', { images: [amd, arm] }),
        pod(ns, 'lost', { images: [world.image('there-is-no-such-tag')] }),
        daemonSet(ns, 'agent', { images: [amd, arm] }),
      );
      await world.eventuallyEvent(ns, 'NoCommonArchitecture', /arm64/);
      await world.eventuallyEvent(ns, 'ImageUnresolvable', /there-is-no-such-tag/);
      const counted = (outcome: string) => controller.metric('archaware_pods', { outcome });
      await world.eventually('the pods to be counted', async () => {
        return (await counted('placed')) >= 1 && (await counted('held')) >= 1 && (await counted('waiting')) >= 1;
      });
      expect(await controller.metric('archaware_image_resolutions_total', { result: 'ok' })).to.be.greaterThan(0);
      expect(await controller.metric('archaware_reconcile_total', { result: 'error' })).to.equal(0);
      for (const name of ['multi', 'torn', 'lost']) {
        const found = await world.eventuallyRuns(ns, name);
        expect(tolerations(found), name).to.deep.equal([]);
        expect(at(found, 'spec', 'affinity'), name).to.equal(undefined);
      }
      expect(tolerations(at(await world.get('DaemonSet', ns, 'agent'), 'spec', 'template'))).to.deep.equal([]);
      for (const node of await world.list('Node', '')) expect(taints(node), nameOf(node)).to.deep.equal([]);
      expect(await world.written()).to.deep.equal([]);
    });

    it('is what plan says: nothing to change, and another mode shows what that one would write', async () => {
      // With the rights of the person who plans: those of the controller do not reach NodePools.
      const person = ['--kubeconfig', world.cluster.kubeconfig];
      const observed = await world.command(['plan', ...OBSERVE, ...person]);
      expect(observed.code, observed.stderr).to.equal(0);
      expect(observed.stdout).to.match(/^Nothing to change\./m);
      expect(observed.stderr).to.include('plan --placement.mode taints shows what that mode would write');
      const planned = await world.command(['plan', '--placement.mode', 'taints', ...person]);
      expect(planned.code, planned.stderr).to.equal(2);
      expect(planned.stdout).to.match(/Node +amd64-1 +taint/);
      expect(planned.stdout).to.match(/Pod +watched +multi +tolerate/);
    });

    it('is not ready while a node has a taint of archaware, and reports it', async () => {
      const annotations = { 'archaware.dev/managed': JSON.stringify({ taints: ours('amd64') }) };
      const taint = { key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' };
      await world.patch('Node', '', NODE, { metadata: { annotations }, spec: { taints: [taint] } });
      await world.eventually('it to be not ready', () => isReady(503));
      expect((await controller.get('/readyz')).text).to.include(
        'taints of archaware on 1 node(s): run archaware clean',
      );
      expect(taints(await world.node(NODE))).to.deep.equal(ours('amd64'));
    });

    it('is not ready while a pod holds the gate of archaware, and reports it', async () => {
      await world.create(pod(ns, 'gated', { images: [world.image('multi')], spec: GATE }));
      await world.eventually('the metric', async () => (await controller.metric('archaware_gated_pods')) === 1);
      expect((await controller.get('/readyz')).text).to.include('the gate of archaware on 1 pod(s)');
      expect(at(await world.get('Pod', ns, 'gated'), 'spec', 'schedulingGates')).to.have.lengthOf(1);
    });

    it('is ready while it runs, once both are gone, and has written nothing', async () => {
      await world.remove('Pod', ns, 'gated');
      const annotations = { 'archaware.dev/managed': null };
      await world.patch('Node', '', NODE, { metadata: { annotations }, spec: { taints: null } });
      await world.eventually('it to be ready', () => isReady(200));
      expect(await world.written()).to.deep.equal([]);
    });
  });
}
