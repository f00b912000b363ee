import { expect } from 'chai';
import { freePorts } from '../../hack/cluster/ports.ts';
import { startController } from '../support/controller-process.ts';
import { nameOf, scheduledOn } from '../support/objects.ts';
import { leads, type RunningController } from '../support/running.ts';
import { applyWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { pod } from '../support/workloads.ts';
import { type ApiProxy, startApiProxy } from './support/api-proxy.ts';
import { admit, affinity, freshImage, GATE, gates, inSilence, isOnArm, ON_ARM } from './support/placed.ts';
import { worldForAll } from './support/world.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';

describe('admission by two replicas, on the real control plane', () => {
  const world = worldForAll();
  let proxy: ApiProxy;
  let replicas: RunningController[] = [];
  let ports: number[];

  before(async () => {
    proxy = await startApiProxy(world.cluster);
    world.atEnd(proxy.close);
    ports = await freePorts(2);
  });
  afterEach(async () => {
    await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
    replicas = [];
    await world.cluster.request('DELETE', LEASE);
  });

  /** The leader, and a follower whom the API server calls, and who reaches it through the proxy. */
  async function two(): Promise<{ leader: RunningController; follower: RunningController }> {
    const [ofLeader = 0, ofFollower = 0] = ports;
    await applyWebhook(world, ofFollower);
    const start = async (kubeconfig: string, port: number) => {
      const webhook = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`, '--placement.mode', 'affinity'];
      const common = ['--registries.insecure', world.registry.host, '--leaderElection.leaseDuration', '3s'];
      const replica = await startController(['--kubeconfig', kubeconfig, ...common, ...webhook]);
      replicas.push(replica);
      return replica;
    };
    const leader = await start(world.kubeconfig, ofLeader);
    await world.eventually('the first to lead', () => leads(leader));
    const follower = await start(await proxy.kubeconfig(world.kubeconfig), ofFollower);
    await eventuallyTrusted(world);
    return { leader, follower };
  }

  /** A follower counts on a leader when it has seen him renew the lease. */
  const eventuallyGates = (ns: string, image: string) =>
    world.eventually('pods to be gated', async () =>
      gates(await admit(world, pod(ns, 'asked', { images: [image] }), true)).includes(GATE),
    );

  it('is answered by a follower; when the leader is killed the follower releases what is gated', async () => {
    const { leader, follower } = await two();
    const ns = await world.namespace('followed');
    const image = await freshImage(world, 'arm64');
    await inSilence(world, async () => {
      await eventuallyGates(ns, image);
      expect(gates(await admit(world, pod(ns, 'web', { images: [image] })))).to.deep.equal([GATE]);
      await leader.stop('SIGKILL');
    });
    const found = await world.eventuallyRuns(ns, 'web');
    expect([scheduledOn(found), affinity(found)]).to.deep.equal(['arm64-1', ON_ARM]);
    expect(await leads(follower)).to.equal(true);
    expect(await follower.metric('archaware_admission_reviews_total', { outcome: 'gated' })).to.be.at.least(2);
  });

  it('resolves what it reviews in every replica, so that a follower answers at once for an image that is known', async () => {
    const { follower } = await two();
    const ns = await world.namespace('known');
    const image = await freshImage(world, 'arm64');
    let tries = 0;
    await world.eventually('the follower to know it', async () => {
      const found = await admit(world, pod(ns, `web-${++tries}`, { images: [image] }));
      return gates(found).length === 0 && isOnArm(found);
    });
    expect(await leads(follower)).to.equal(false);
    expect(await follower.metric('archaware_image_resolutions_total', { result: 'ok' })).to.equal(1);
  });

  it('adds no gate while nobody leads, and again when somebody does', async () => {
    const { leader, follower } = await two();
    const ns = await world.namespace('leaderless');
    const image = await freshImage(world, 'multi');
    await inSilence(world, async () => {
      await eventuallyGates(ns, image);
      expect(gates(await admit(world, pod(ns, 'before', { images: [image] })))).to.deep.equal([GATE]);
      // The follower cannot take the lease that runs out.
      const hold = proxy.hold((method, path) => method === 'PUT' && path.includes('/leases/'));
      await leader.stop('SIGKILL');
      let tries = 0;
      const passed = await world.eventually('a pod to pass', async () => {
        const found = await admit(world, pod(ns, `during-${++tries}`, { images: [image] }));
        return gates(found).length === 0 && found;
      });
      expect(affinity(passed)).to.equal(undefined);
      await world.eventuallyRuns(ns, nameOf(passed));
      expect(await leads(follower)).to.equal(false);
      hold.release();
      await world.eventually('it to lead', () => leads(follower));
      expect(gates(await admit(world, pod(ns, 'after', { images: [image] })))).to.deep.equal([GATE]);
    });
    await world.eventually('no gate to be left', async () => (await world.list('Pod', ns)).flatMap(gates).length === 0);
  });
});
