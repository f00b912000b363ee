import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import type { RealNode } from '../../hack/cluster/real-node.ts';
import { needsRealNode, otherArchitecture } from '../e2e/support/real-node.ts';
import { pushPrograms } from '../e2e/support/real-world.ts';
import { worldForAll } from '../e2e/support/world.ts';
import { ours, scheduledOn, taints, tolerations } from '../support/objects.ts';
import { pod } from '../support/workloads.ts';

/** What the kubelet does with images of volumes, and that pods go where it mounts them. */
describe('image volumes on a real node', function () {
  this.timeout(300_000);
  const ns = 'shop';
  const world = worldForAll({ cluster: { node: 'real' }, nodes: [] }, needsRealNode);
  let node: RealNode;
  let fake: string;
  let own: string;
  let other: string;

  before(async () => {
    node = world.cluster.node ?? expect.fail('the cluster has no node');
    own = node.architecture;
    other = otherArchitecture(node);
    fake = `fake-${other}`;
    await Promise.all([
      world.cluster.createNode({ name: fake, architecture: other }),
      pushPrograms(world, node.architecture, otherArchitecture(node)),
      world.namespace(ns),
    ]);
    await world.run(mirrors());
    await eventually('both nodes to be tainted', async () => {
      const nodes = await world.list('Node', '');
      return nodes.length === 2 && nodes.every((one) => taints(one).length === 1);
    });
  });

  /** The node knows the registry by a name of its own. */
  const mirrors = () => [
    '--registries.mirrors',
    JSON.stringify({ [world.registry.nodeHost ?? '']: { endpoints: [world.registry.host] } }),
  ];

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    world.cluster.waitFor(what, condition, 120_000);

  /** A container that mounts an image, with more fields of the pod. */
  const mounting = (name: string, image: string, volume: string, spec: object = {}) => {
    const volumes = [{ name: 'data', image: { reference: world.image(volume), pullPolicy: 'IfNotPresent' } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const containers = [{ name: 'main', image: world.image(image), volumeMounts }];
    return pod(ns, name, { images: [], spec: { ...spec, containers, volumes } });
  };
  const stateOf = async (name: string) =>
    at(await world.get('Pod', ns, name), 'status', 'containerStatuses', 0, 'state', 'waiting');

  it('of an index without the platform of a node keep the pod off that node', async () => {
    await world.create(mounting('elsewhere', 'index-both', `index-${other}`));
    await eventually(
      'the pod to run elsewhere',
      async () => scheduledOn(await world.get('Pod', ns, 'elsewhere')) === fake,
    );
    expect(tolerations(await world.get('Pod', ns, 'elsewhere'))).to.deep.equal(ours(other));
  });

  it('of a single manifest for another architecture are mounted here', async () => {
    const here = { nodeSelector: { 'kubernetes.io/hostname': node.name } };
    await world.create(mounting('mounted', 'index-both', `program-${other}`, here));
    await eventually('the pod to run here', async () => {
      const found = await world.get('Pod', ns, 'mounted');
      return at(found, 'status', 'phase') === 'Running' && scheduledOn(found) === node.name;
    });
    expect(tolerations(await world.get('Pod', ns, 'mounted'))).to.deep.equal(ours(own, other));
  });

  it('that have nothing in common with the containers hold the pod, and the Event names the volume', async () => {
    await world.create(mounting('held', `program-${own}`, `index-${other}`));
    const told = async () =>
      (await world.events(ns, 'NoCommonArchitecture')).find((note) =>
        note.includes(`; volume data: ${world.image(`index-${other}`)} (linux/${other})`),
      );
    await eventually('an Event that names the volume', told);
    expect(scheduledOn(await world.get('Pod', ns, 'held'))).to.equal(undefined);
  });

  it('that are forced onto a node without their platform are refused by the kubelet, and WrongNode names the volume', async () => {
    await world.create(mounting('forced', 'index-both', `index-${other}`, { nodeName: node.name }));
    const waiting = await eventually('the kubelet to refuse the image', async () => {
      const state = await stateOf('forced');
      return /no match for platform in manifest/.test(String(at(state, 'message'))) && state;
    });
    expect(at(waiting, 'reason')).to.be.oneOf(['ErrImagePull', 'ImagePullBackOff']);
    const seen = `container main cannot start on node ${node.name} (${own}): the image of volume data has no such platform`;
    await eventually('an Event WrongNode', async () =>
      (await world.events(ns, 'WrongNode')).find((note) => note.startsWith(seen)),
    );
    await eventually('explain to say the same', async () => {
      const { stdout, stderr } = await world.command([
        'explain',
        `${ns}/forced`,
        ...mirrors(),
        '--registries.insecure',
        world.registry.host,
      ]);
      if (stdout.includes(seen)) return true;
      throw new Error(stdout + stderr);
    });
  });
});
