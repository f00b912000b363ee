import { expect } from 'chai';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { annotation, ours, scheduledOn, tolerations } from '../../support/objects.ts';
import type { RunningController } from '../../support/running.ts';
import { runWithWebhook } from '../../support/webhook.ts';
import { daemonSet, deployment, pod } from '../../support/workloads.ts';
import { pathOf, type World } from '../../support/world.ts';
import type { Start } from './context.ts';

const TERMS = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
const GATE = 'archaware.dev/architecture';
const IGNORED = { 'archaware.dev/ignore': 'true' };
const REJECT = '[{name: reject, podSelector: torn=reject, noCommonArchitecture: reject}]';
/** What the author of a pod requires. */
const OWN = { key: 'example.com/zone', operator: 'DoesNotExist' };

const gates = (object: unknown) => listAt(object, 'spec', 'schedulingGates').map((gate) => at(gate, 'name'));
const terms = (object: unknown) => listAt(object, 'spec', ...TERMS);

export function describeAdmission(start: Start): void {
  for (const mode of ['taints', 'affinity', 'both'] as const) {
    describe(`admission with placement.mode: ${mode}`, () => {
      let world: World;
      let controller: RunningController;
      before(async () => {
        world = await start();
        const flags = ['--placement.mode', mode, '--bootstrap.timeout', '5s', '--policies', REJECT];
        controller = await runWithWebhook(world, ...flags);
      });
      after(() => world?.stop());

      it('gates a pod whose image nobody has asked for, and releases it to where it runs', async () => {
        const ns = await world.namespace('cold');
        const own = { nodeSelectorTerms: [{ matchExpressions: [OWN] }] };
        const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: own } };
        await world.create(pod(ns, 'web', { images: [world.image('arm64')], spec: { affinity } }));
        const placed = await world.eventuallyRuns(ns, 'web');
        expect(scheduledOn(placed)).to.equal('arm64-1');
        expect(gates(placed)).to.deep.equal([]);
        expect(tolerations(placed)).to.deep.equal(mode === 'affinity' ? [] : ours('arm64'));
        const arm = { key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] };
        expect(terms(placed)).to.deep.equal([{ matchExpressions: mode === 'taints' ? [OWN] : [OWN, arm] }]);
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
        const images = [world.image('amd64'), world.image('arm64')];
        const rejected = pod(ns, 'rejected', { images, labels: { torn: 'reject' } });
        const { status, body } = await world.cluster.request('POST', pathOf('Pod', ns), rejected);
        expect(status, 'with noCommonArchitecture: reject').to.equal(403);
        for (const part of [`${images[0]} (linux/amd64)`, `${images[1]} (linux/arm64)`])
          expect(at(body, 'message')).to.include(part);
      });

      it('is not asked about a pod that names its node, or is to be ignored, and gates none of the control plane', async () => {
        const ns = await world.namespace('alone');
        await world.namespace('ignored', IGNORED);
        const images = [`${world.registry.host}/nobody/knows:1`];
        const created = async (object: ReturnType<typeof pod>) => {
          await world.create(object);
          const found = await world.get('Pod', object.metadata.namespace, object.metadata.name);
          expect([gates(found), terms(found), annotation(found, 'archaware.dev/managed')]).to.deep.equal([
            [],
            [],
            undefined,
          ]);
        };
        const before = await controller.metric('archaware_admission_reviews_total');
        await created(pod(ns, 'bound', { images, spec: { nodeName: 'amd64-1' } }));
        await created(pod(ns, 'labelled', { images, labels: IGNORED }));
        await created(pod('ignored', 'of-it', { images }));
        expect(await controller.metric('archaware_admission_reviews_total')).to.equal(before);
        const nodeSelector = { 'node-role.kubernetes.io/control-plane': '' };
        await created(pod(ns, 'control-plane', { images, spec: { nodeSelector } }));
      });
    });
  }
}
