import { expect } from 'chai';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { ours, scheduledOn, tolerations } from '../../support/objects.ts';
import { runWithWebhook } from '../../support/webhook.ts';
import { daemonSet, deployment, pod } from '../../support/workloads.ts';
import { pathOf, type World } from '../../support/world.ts';
import type { Start } from './context.ts';

const TERMS = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
const GATE = 'archaware.dev/architecture';

const gates = (object: unknown) => listAt(object, 'spec', 'schedulingGates').map((gate) => at(gate, 'name'));
const terms = (object: unknown) => listAt(object, 'spec', ...TERMS);

export function describeAdmission(start: Start): void {
  for (const mode of ['taints', 'affinity', 'both'] as const) {
    describe(`admission with placement.mode: ${mode}`, () => {
      let world: World;
      before(async () => {
        world = await start();
        await runWithWebhook(world, '--placement.mode', mode, '--bootstrap.timeout', '5s');
      });
      after(() => world?.stop());

      it('gates a pod whose image nobody has asked for, and releases it to where it runs', async () => {
        const ns = await world.namespace('cold');
        await world.create(pod(ns, 'web', { images: [world.image('arm64')] }));
        const placed = await world.eventuallyRuns(ns, 'web');
        expect(scheduledOn(placed)).to.equal('arm64-1');
        expect(gates(placed)).to.deep.equal([]);
        expect(tolerations(placed)).to.deep.equal(mode === 'affinity' ? [] : ours('arm64'));
        expect(JSON.stringify(terms(placed))).to.equal(
          mode === 'taints'
            ? '[]'
            : '[{"matchExpressions":[{"key":"kubernetes.io/arch","operator":"In","values":["arm64"]}]}]',
        );
        const patch = `PATCH ${pathOf('Pod', ns, 'web')}`;
        expect((await world.written()).filter((line) => line === patch)).to.have.lengthOf(1);
      });

      it('never gates a pod whose image is known', async () => {
        const ns = await world.namespace('warm');
        await world.create(pod(ns, 'first', { images: [world.image('multi')] }));
        await world.eventuallyRuns(ns, 'first');
        await world.create(deployment(ns, 'web', { images: [world.image('multi')], replicas: 3 }));
        for (const found of await world.eventuallyAllRun(ns, 'web', 3)) {
          expect(gates(found)).to.deep.equal([]);
          expect(at(found, 'metadata', 'generation')).to.equal(1);
        }
        // The template of a DaemonSet gets its set at its creation, too.
        await world.create(daemonSet(ns, 'agent', { images: [world.image('multi')] }));
        const created = await world.get('DaemonSet', ns, 'agent');
        const template = at(created, 'spec', 'template');
        expect(tolerations(template)).to.deep.equal(mode === 'affinity' ? [] : ours('amd64', 'arm64'));
        expect(at(created, 'metadata', 'generation')).to.equal(1);
      });

      it('holds a pod whose images have nothing in common', async () => {
        const ns = await world.namespace('torn');
        await world.create(pod(ns, 'torn', { images: [world.image('amd64'), world.image('arm64')] }));
        await world.eventuallyEvent(ns, 'NoCommonArchitecture', /no architecture/);
        const found = await world.get('Pod', ns, 'torn');
        expect(scheduledOn(found)).to.equal(undefined);
        expect(gates(found)).to.deep.equal([GATE]);
        // Known at once, what it lacks is enough to hold it on tainted nodes.
        await world.create(pod(ns, 'known', { images: [world.image('amd64'), world.image('arm64')] }));
        const known = await world.get('Pod', ns, 'known');
        expect([gates(known), tolerations(known)]).to.deep.equal([mode === 'taints' ? [] : [GATE], []]);
      });
    });
  }
}
