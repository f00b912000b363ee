import { expect } from 'chai';
import { annotation, ours, scheduledOn, taints } from '../support/objects.ts';
import { deployment } from '../support/workloads.ts';
import { worldForAll } from './support/world.ts';

const MANAGED = 'archaware.dev/managed';
const NODES = ['amd64-1', 'amd64-2', 'arm64-1'];
/** The value of `taints.key` here; the policies need it too. */
const KEYS = ['supported-arch', 'example.com/arch'];

describe('taints of nodes on the real control plane', () => {
  const world = worldForAll({
    nodes: NODES.map((name) => ({ name, architecture: name.slice(0, 5), labels: { pool: name } })),
    guard: { taints: KEYS.flatMap((key) => [`${key}:NoSchedule`, `${key}:PreferNoSchedule`]) },
  });
  afterEach(() => world.stopControllers());

  /** Waits until the node has these taints (without those of Kubernetes), and its annotation names archaware's. */
  const eventuallyTainted = (name: string, wanted: readonly string[]) =>
    world.eventually(`node ${name} to have ${wanted.join(' ') || 'no taint'}`, async () => {
      const found = await world.node(name);
      const expected = wanted.length === 0 ? undefined : JSON.stringify({ taints: wanted });
      if (taints(found).sort().join() === [...wanted].sort().join() && annotation(found, MANAGED) === expected) {
        return found;
      }
      throw new Error(`it has ${taints(found).join(' ')} and records ${String(annotation(found, MANAGED))}`);
    });

  const architectureOf = (node: string) => node.slice(0, 5);

  async function eventuallyAllTainted(key = 'supported-arch', effect = 'NoSchedule'): Promise<void> {
    for (const name of NODES) await eventuallyTainted(name, [`${key}=${architectureOf(name)}:${effect}`]);
  }

  it('taints a node that joins under load before a pod can land there wrongly', async () => {
    await world.run();
    await eventuallyAllTainted();
    const namespace = await world.namespace('joining');
    // More pods than the nodes of their architecture take: the rest is waiting for whatever node comes.
    const spec = { containers: [{ name: 'main', image: world.image('amd64'), resources: { requests: { cpu: '4' } } }] };
    await world.create(deployment(namespace, 'app', { images: [], spec, replicas: 60 }));
    const bound = async () => (await world.pods(namespace, 'app')).flatMap((one) => scheduledOn(one) ?? []);
    await world.eventually('the nodes to be full', async () => (await bound()).length === 32);
    // Ready at once, as no real node is: a start-up taint stands for what a provider does until then.
    const starting = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };
    const join = async (name: string) => {
      await world.cluster.createNode({ name, architecture: 'arm64', taints: [starting] });
      await world.cluster.kubectl(['taint', 'nodes', name, `${starting.key}-`]);
    };
    await Promise.all(['wrong-1', 'wrong-2', 'wrong-3'].map(join));
    for (const name of ['wrong-1', 'wrong-2', 'wrong-3']) await eventuallyTainted(name, ours('arm64'));
    await Promise.all(['right-1', 'right-2'].map((name) => world.cluster.createNode({ name, architecture: 'amd64' })));
    await world.eventually('all to be bound', async () => (await bound()).length === 60);
    expect(new Set(await bound())).to.deep.equal(new Set(['amd64-1', 'amd64-2', 'right-1', 'right-2']));
  });
});
