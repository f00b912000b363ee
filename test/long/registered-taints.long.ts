import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { eventuallyOn, nothingIsLeft, whatIsThere } from '../e2e/support/real-checks.ts';
import {
  editConfiguration,
  installManifest,
  needsRealWorld,
  type RealWorld,
  registerAgain,
  startRealWorld,
} from '../e2e/support/real-world.ts';
import type { LiveWorld } from '../e2e/support/world.ts';
import { nameOf, ours, scheduledOn, taints, uidOf } from '../support/objects.ts';
import { deployment } from '../support/workloads.ts';

const NS = 'shop';
const POOL = 'eks.amazonaws.com/nodegroup';

/** As docs/autoscalers.md and docs/install.md say of node groups: the kubelet's registerWithTaints, and taints of the group. */
describe('nodes that register with the taint of archaware', function () {
  this.timeout(300_000);
  let real: RealWorld;
  let world: LiveWorld;
  let own: string;
  let other: string;
  const taintOf = (value: string) => ({ key: 'supported-arch', value, effect: 'NoSchedule' });

  before(async function () {
    needsRealWorld(this);
    real = await startRealWorld();
    ({ world, own, other } = real);
    await world.remove('Node', '', real.fake);
    await Promise.all([
      registerAgain(real, { registerWithTaints: [taintOf(own)] }),
      world.cluster.createNode({ name: real.fake, architecture: other, taints: [taintOf(other)] }),
    ]);
    await world.namespace(NS);
  });
  after(() => real?.stop());
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await whatIsThere(world));
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    eventuallyOn(world)(what, condition);
  const podOf = async (tag: string) => (await world.pods(NS, tag))[0];

  it('have it from their first second, and pods wait while archaware is not there', async () => {
    expect(taints(await world.node(real.node.name))).to.deep.equal(ours(own));
    const tags = [`program-${own}`, `index-${other}`];
    await world.create(...tags.map((tag) => deployment(NS, tag, { images: [world.image(tag)] })));
    for (const tag of tags) {
      await eventually(`${tag} to be unschedulable`, async () =>
        listAt(await podOf(tag), 'status', 'conditions').some((condition) =>
          String(at(condition, 'message')).includes('untolerated taint'),
        ),
      );
      expect(scheduledOn(await podOf(tag))).to.equal(undefined);
    }
  });

  it('are taken as its own: it starts there, places the pods, and reports no node', async () => {
    await installManifest(real);
    await editConfiguration(real, `registries: {insecure: ["${world.registry.nodeHost}"]}`);
    for (const [tag, node] of [
      [`program-${own}`, real.node.name],
      [`index-${other}`, real.fake],
    ] as const) {
      await eventually(`${tag} to run`, async () => at(await podOf(tag), 'status', 'phase') === 'Running');
      expect(scheduledOn(await podOf(tag)), tag).to.equal(node);
    }
    for (const name of [real.node.name, real.fake]) expect(taints(await world.node(name))).to.have.lengthOf(1);
    expect(await world.events('default', 'JoinedUntainted')).to.deep.equal([]);
  });

  it('join again without a word; a node of the same group without the taint is reported', async () => {
    const holder = async () =>
      at(await world.get('Lease', 'archaware', 'archaware-controller'), 'spec', 'holderIdentity');
    const [before, led] = [uidOf(await world.node(real.node.name)), await holder()];
    await registerAgain(real, {});
    const again = await world.node(real.node.name);
    expect(uidOf(again)).not.to.equal(before);
    expect(taints(again)).to.deep.equal(ours(own));
    // Its replicas have started again with the node.
    await eventually('a leader', async () => ![led, '', undefined].includes(await holder()));
    const group = { architecture: other, labels: { [POOL]: 'arm' } };
    await world.cluster.createNode({ ...group, name: 'tainted', taints: [taintOf(other)] });
    await world.cluster.createNode({ ...group, name: 'untainted' });
    await eventually(
      'the Event about the node without the taint',
      async () => (await world.events('default', 'JoinedUntainted')).length > 0,
    );
    const path = '/apis/events.k8s.io/v1/namespaces/default/events';
    const all = listAt((await world.cluster.request('GET', path)).body, 'items');
    const reported = all.filter((event) => at(event, 'reason') === 'JoinedUntainted');
    expect(reported.map((event) => at(event, 'regarding', 'name'))).to.deep.equal(['untainted']);
    await eventually('the untainted node to be tainted', async () => {
      return taints(await world.node('untainted')).join() === ours(other).join();
    });
  });

  it('lose it by clean, which names the group; a node that registers afterwards has it again', async () => {
    await real.kubectl('-n', NS, 'delete', 'deployment', `index-${other}`);
    const { code, stdout, stderr } = await world.command(['clean', '--stop', '--yes']);
    expect(code, stdout + stderr).to.equal(0);
    expect(stdout + stderr).to.match(/node group arm/);
    await nothingIsLeft(world, { keepsPods: true });
    await registerAgain(real, {});
    expect(taints(await world.node(real.node.name))).to.deep.equal(ours(own));
    for (const node of await world.list('Node', '')) {
      if (nameOf(node) !== real.node.name) expect(taints(node), nameOf(node)).to.deep.equal([]);
    }
  });
});
