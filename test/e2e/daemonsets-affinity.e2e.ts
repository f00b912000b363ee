import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { runs, scheduledOn, taints, tolerations } from '../support/objects.ts';
import { arrangeWebhook } from '../support/webhook.ts';
import { daemonSet } from '../support/workloads.ts';
import { onArch, required } from './support/placed.ts';
import { nodesNamed, worldForAll } from './support/world.ts';

const NODES = ['amd64-1', 'arm64-1'];
const onlyOn = (...architectures: readonly string[]) => ({ nodeAffinity: required([onArch(...architectures)]) });

describe('DaemonSets in the mode affinity, on the real control plane', () => {
  const world = worldForAll({ nodes: nodesNamed(...NODES) });
  let namespace: string;
  let flags: readonly string[];

  before(async () => {
    flags = [...(await arrangeWebhook(world)).flags, '--placement.mode', 'affinity'];
    namespace = await world.namespace('add-ons');
  });

  const template = async (name: string) =>
    at(await world.get('DaemonSet', namespace, name), 'spec', 'template', 'spec');
  const eventually = (name: string, nodes: readonly string[], affinity: unknown) =>
    world.eventually(`${name} to run on ${nodes.join(' and ')} alone`, async () => {
      const found = at(await template(name), 'affinity');
      const on = (await world.pods(namespace, name)).filter(runs).map((one) => scheduledOn(one) ?? '');
      if (on.sort().join() === nodes.join() && JSON.stringify(found) === JSON.stringify(affinity)) return true;
      throw new Error(`it runs on ${on}, with ${JSON.stringify(found)}`);
    });

  it('get no pod on nodes that their images do not run on, and keep what their authors require', async () => {
    const zone = { key: 'example.com/zone', operator: 'DoesNotExist' };
    const own = { affinity: { nodeAffinity: required([onArch('amd64', 'arm64')]) } };
    await world.create(
      daemonSet(namespace, 'add-on', { images: [world.image('amd64')] }),
      daemonSet(namespace, 'zoned', {
        images: [world.image('amd64')],
        spec: { affinity: { nodeAffinity: required([zone]) } },
      }),
      daemonSet(namespace, 'own', { images: [world.image('amd64')], spec: own }),
    );
    for (const name of ['add-on', 'zoned']) {
      await world.eventually(`${name} to run everywhere`, async () => {
        return (await world.pods(namespace, name)).filter(runs).length === NODES.length;
      });
    }
    await world.run(flags);
    await eventually('add-on', ['amd64-1'], onlyOn('amd64'));
    await eventually('zoned', ['amd64-1'], { nodeAffinity: required([zone, onArch('amd64')]) });
    expect(at(await template('own'), 'affinity')).to.deep.equal(own.affinity);
    expect((await world.list('Node', '')).flatMap(taints)).to.deep.equal([]);
    const { stdout } = await world.command(['explain', 'daemonset/add-on', '-n', namespace, '--verbose', ...flags]);
    expect(stdout).to.include('kubernetes.io/arch in (amd64)');
  });

  it('keep it when an update drops it, also while no controller runs', async function () {
    if (!hasMutatingPolicies()) this.skip();
    await world.stopControllers();
    const drop = [
      { op: 'remove', path: '/spec/template/spec/affinity' },
      { op: 'remove', path: '/metadata/annotations/archaware.dev~1tolerations' },
    ];
    await world.patch('DaemonSet', namespace, 'add-on', drop);
    await eventually('add-on', ['amd64-1'], onlyOn('amd64'));
  });

  it('change it for tolerations with the mode, and back', async () => {
    await world.run();
    const eventuallyTolerates = (count: number) =>
      world.eventually('tolerations instead', async () => {
        const { affinity, ...spec } = Object(await template('add-on'));
        return affinity === undefined && tolerations({ spec }).length === count;
      });
    await eventuallyTolerates(1);
    await world.stopControllers();
    const { stdout } = await world.command(['plan', ...flags]);
    expect(stdout).to.match(/add-on .*kubernetes\.io\/arch in \(amd64\)/);
    await world.run(flags);
    await eventually('add-on', ['amd64-1'], onlyOn('amd64'));
    expect(tolerations({ spec: await template('add-on') })).to.deep.equal([]);
  });
});
