import { expect } from 'chai';
import { at, textAt } from '../../hack/cluster/json.ts';
import { annotation, nameOf, ours, runs, taints, tolerations, uidOf } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { admit, affinity, GATE, gates, inSilence, MANAGED } from './support/placed.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';

describe('admission that is taken away again, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let ns: string;

  before(async () => {
    world = await startWorld();
    webhook = await arrangeWebhook(world);
    ns = await world.namespace('undone');
  });
  after(() => world?.stop());
  async function run(): Promise<void> {
    const lease = ['--leaderElection.leaseDuration', '3s', '--bootstrap.timeout', '2s'];
    const controller = await world.run([...webhook.flags, '--placement.mode', 'both', ...lease]);
    await eventuallyTrusted(world);
    await world.eventually('it to lead', async () => (await controller.metric('archaware_leader')) === 1);
    await world.eventually('nodes to be tainted', async () =>
      (await world.list('Node', '')).every((node) => taints(node).length === 1),
    );
  }
  const allRun = (count: number) =>
    world.eventually(`${count} pods to run`, async () => {
      const pods = (await world.list('Pod', ns)).filter(
        (found) => at(found, 'metadata', 'deletionTimestamp') === undefined,
      );
      return pods.length === count && pods.every(runs) && pods;
    });
  const warm = async (image: string) => {
    let tries = 0;
    await world.eventually(
      'the image to be known',
      async () => gates(await admit(world, pod(ns, `warm-${++tries}`, { images: [image] }))).length === 0,
    );
    await world.cluster.kubectl(['delete', 'pods', '--all', '-n', ns, '--force']);
  };
  /** Nodes and DaemonSets as their authors wrote them, without what archaware and Kubernetes write later. */
  const foreign = async () =>
    [...(await world.list('Node', '')), ...(await world.list('DaemonSet', ''))].map((object) => ({
      name: nameOf(object),
      labels: at(object, 'metadata', 'labels'),
      spec: at(object, 'spec'),
      ours: Object.keys(Object(at(object, 'metadata', 'annotations'))).filter((name) =>
        name.startsWith('archaware.dev/'),
      ),
    }));

  it('clean takes the configuration first, then every gate, and leaves nothing of ours; gated pods are scheduled', async () => {
    await world.create(daemonSet(ns, 'agent', { images: [world.image('multi')], spec: { priority: 0 } }));
    await allRun(2);
    const before = await foreign();
    await run();
    await warm(world.image('arm64'));
    await world.create(deployment(ns, 'web', { images: [world.image('arm64')], replicas: 2 }));
    await allRun(4);
    expect((await world.pods(ns, 'web')).every((found) => annotation(found, MANAGED) !== undefined)).to.equal(true);
    await inSilence(world, async () => {
      const images = [world.image('wide')];
      await world.create(deployment(ns, 'gated', { images, replicas: 3 }), pod(ns, 'bare', { images }));
      await world.eventually('them to be gated', async () => {
        const pods = [...(await world.pods(ns, 'gated')), await world.get('Pod', ns, 'bare')];
        return pods.length === 4 && pods.every((found) => gates(found).includes(GATE));
      });
      await world.stopControllers();
    });
    const gated = new Map(
      (await world.list('Pod', ns)).filter((found) => gates(found).length > 0).map((found) => [uidOf(found), found]),
    );
    const from = await world.requestCount();
    const { code, stdout, stderr } = await world.command(['clean', '--yes', '--webhook.enabled', '--output', 'json']);
    expect(code, stdout + stderr).to.equal(0);
    expect(at(JSON.parse(stdout), 'removed', 'gates')).to.equal(4);

    const writes = await world.writesSince(from);
    const first = writes.findIndex((line) => line.includes('/pods/'));
    const deleted = writes.findIndex((line) =>
      /^delete .*mutatingwebhookconfigurations\/archaware-controller /.test(line),
    );
    expect(deleted).to.be.within(0, first - 1);
    expect((await world.cluster.request('GET', CONFIGURATION)).status).to.equal(404);
    const secret = pathOf('Secret', 'archaware', 'archaware-controller-webhook');
    expect((await world.cluster.request('GET', secret)).status).to.equal(404);

    for (const found of await allRun(8)) {
      expect(gates(found)).to.deep.equal([]);
      expect(annotation(found, MANAGED)).to.equal(undefined);
      // The others could start on a node of amd64 if they were replaced.
      expect(tolerations(found)).to.deep.equal(
        textAt(found, 'metadata', 'labels', 'app') === 'web' ? ours('arm64') : [],
      );
      // Of the pods that were gated nothing but the gate has changed.
      const wished = gated.get(uidOf(found));
      if (wished !== undefined) expect(affinity(found)).to.deep.equal(affinity(wished));
    }
    expect((await world.list('Pod', ns)).map(uidOf)).to.include.members([...gated.keys()]);
    expect(await foreign()).to.deep.equal(before);
    expect((await world.command(['clean', '--yes', '--webhook.enabled'])).code).to.equal(0);
  });
});
