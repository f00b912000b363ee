import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { editConfiguration, installManifest, realWorldForAll } from '../e2e/support/real-world.ts';
import { isGoing, isReady, nameOf, ours, scheduledOn, taints, tolerations, uidOf } from '../support/objects.ts';
import { deployment, pod } from '../support/workloads.ts';

const DEPLOYMENT = 'archaware-controller';
const LEASE = 'archaware-controller';
const PODS = Number(process.env.ARCHAWARE_PODS || 10_000);
const DEADLINE_MS = 240_000;

/** What happens to the node of the replicas, one after the other on one installation. */
describe('the life of an installation on a real node', function () {
  this.timeout(600_000);
  const ns = 'shop';
  const { real, world } = realWorldForAll();
  let other: string;
  let served = 0;

  before(async () => {
    ({ other } = real);
    await installManifest(real);
    await editConfiguration(real, `registries: {insecure: ["${world.registry.nodeHost}"]}`);
    await world.namespace(ns);
    await real.block('docs/install.md', 'kubectl wait node --all');
  });
  beforeEach(async () => {
    await eventually('two replicas to be ready', async () => (await readyReplicas()).length === 2);
    await eventually('one of them to lead', async () => (await leader()) !== undefined);
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>, deadlineMs = DEADLINE_MS) =>
    world.cluster.waitFor(what, condition, deadlineMs);

  const replicas = async () => {
    const path = `/api/v1/namespaces/archaware/pods?labelSelector=app.kubernetes.io%2Fname%3D${DEPLOYMENT}`;
    return listAt((await world.cluster.request('GET', path)).body, 'items').filter((one) => !isGoing(one));
  };
  const readyReplicas = async () => (await replicas()).filter(isReady);
  /** The replica that the Lease names; undefined where none that runs is named. */
  const leader = async () => {
    const holder = String(at(await world.get('Lease', 'archaware', LEASE), 'spec', 'holderIdentity'));
    return (await replicas()).find((one) => holder.startsWith(`${nameOf(one)}-`) || holder === nameOf(one));
  };
  const restarts = async (name: string) => {
    const found = (await replicas()).find((one) => nameOf(one) === name);
    return Number(at(found, 'status', 'containerStatuses', 0, 'restartCount'));
  };

  /** Seconds until it is so, for the table that this run prints. */
  async function seconds(what: string, condition: () => Promise<unknown>, deadlineMs?: number): Promise<void> {
    const begun = performance.now();
    await eventually(what, async () => Boolean(await condition()), deadlineMs);
    console.log(`        ${what}: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  }

  /** Shows that somebody works: a new pod gets its toleration. */
  async function serves(): Promise<void> {
    const name = `served-${++served}`;
    await world.create(pod(ns, name, { images: [world.image(`index-${other}`)] }));
    await seconds(`${name} is placed`, async () => {
      const found = await world.get('Pod', ns, name);
      return tolerations(found).join() === ours(other).join() && scheduledOn(found) === real.fake;
    });
  }

  it('a power cut of the node: what was created meanwhile is placed when it is back', async () => {
    const before = new Map(
      await Promise.all((await replicas()).map(async (one) => [nameOf(one), await restarts(nameOf(one))] as const)),
    );
    await world.cluster.cutNodePower();
    const name = 'meanwhile';
    await world.create(pod(ns, name, { images: [world.image(`index-${other}`)] }));
    await world.cluster.startNode();
    await seconds('both replicas are ready again', async () => {
      const again = (await readyReplicas()).map(nameOf).filter((one) => before.has(one));
      const counts = await Promise.all(again.map(async (one) => (await restarts(one)) > (before.get(one) ?? 0)));
      return counts.filter(Boolean).length === 2;
    });
    await seconds('the pod is placed', async () => scheduledOn(await world.get('Pod', ns, name)) === real.fake);
    expect(taints(await world.node(real.node.name))).to.deep.equal(ours(real.node.architecture));
    await serves();
  });

  it('a drain of the only node that runs it: the PodDisruptionBudget keeps one replica', async () => {
    const drained = await world.cluster.kubectl([
      ...['drain', real.node.name, '--pod-selector', `app.kubernetes.io/name=${DEPLOYMENT}`],
      ...['--delete-emptydir-data', '--timeout=20s'],
    ]);
    expect(drained.code).not.to.equal(0);
    expect(drained.stderr).to.include('would violate the pod');
    expect(await readyReplicas()).to.have.lengthOf(1);
    await serves();
    await real.kubectl('uncordon', real.node.name);
  });

  it(`stays within the manifest’s memory with ${PODS} pods`, async () => {
    const nodes = Math.ceil(PODS / 1000);
    for (let count = 0; count < nodes; count += 1) {
      await world.cluster.createNode({ name: `fake-${other}-${count}`, architecture: other });
    }
    const image = world.image(`index-${other}`);
    for (let count = 0; count < nodes; count += 1) {
      await world.create(
        deployment(ns, `many-${count}`, { images: [image], replicas: Math.min(1000, PODS - count * 1000) }),
      );
    }
    const path = `/api/v1/namespaces/${ns}/pods?limit=1`;
    const waiting = `${path}&fieldSelector=spec.nodeName%3D`;
    const count = async (of: string) => {
      const { body } = await world.cluster.request('GET', of);
      return listAt(body, 'items').length + Number(at(body, 'metadata', 'remainingItemCount') ?? 0);
    };
    const arePlaced = async () => (await count(path)) >= PODS && (await count(waiting)) === 0;
    await seconds(`${PODS} pods are placed`, arePlaced, DEADLINE_MS + PODS * 60);
    for (const one of await replicas()) {
      // Of the pod's cgroup, and of the container below it; in bytes.
      const group = `$(find /sys/fs/cgroup/memory/kubepods -type d -name "pod${uidOf(one)}")`;
      const read = (file: string) => real.node.run('bash', '-c', `cat ${group}/${file}`);
      const [most, failures] = await Promise.all(['memory.max_usage_in_bytes', 'memory.failcnt'].map(read));
      console.log(
        `        ${nameOf(one)}: at most ${Math.round(Number(most) / 2 ** 20)} MiB, limit reached ${Number(failures)} times`,
      );
      expect(Number(failures)).to.equal(0);
    }
    await Promise.all(Array.from({ length: nodes }, (_, index) => world.remove('Deployment', ns, `many-${index}`)));
    await seconds('they are gone', async () => (await count(path)) < 100, DEADLINE_MS + PODS * 60);
  }).timeout(1_800_000);
});
