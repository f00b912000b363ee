import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { ours, tolerations } from '../support/objects.ts';
import { leads } from '../support/running.ts';
import { deployment } from '../support/workloads.ts';
import { createReplicas, type Replica, type Replicas } from './support/replicas.ts';
import { worldForAll } from './support/world.ts';

const LEASE = 'archaware-controller';
/** What reads every tolerable image of these tests writes to their pods. */
const BOTH = ours('amd64', 'arm64');

const isPodPatch = (method: string, path: string) => method === 'PATCH' && path.includes('/pods/');

describe('two replicas', () => {
  const world = worldForAll();
  let namespaces = 0;
  /** Each goes through a proxy of its own, so that its requests can be distinguished from the other's. */
  let replicas: Replicas;

  before(async () => {
    replicas = createReplicas(world.cluster, world.kubeconfig, ['--registries.insecure', world.registry.host]);
  });

  afterEach(async () => {
    for (const replica of replicas.all()) await replicas.end(replica);
    // The next test starts with a lease that nobody holds, and nodes that nobody tainted do not matter to it.
    await world.cluster.request('DELETE', `/apis/coordination.k8s.io/v1/namespaces/archaware/leases/${LEASE}`);
  });

  const start = (...flags: readonly string[]) => replicas.start({ flags });
  /** Waits for the end of a replica after SIGTERM. It uses a signal without an effect, because a second SIGTERM would end it. */
  const ended = ({ controller }: Replica) => controller.stop('SIGCONT');
  const leading = ({ controller }: Replica) => world.eventually('the replica to lead', () => leads(controller));
  const lease = () => world.get('Lease', 'archaware', LEASE);

  /** Creates pods that need tolerations, in a namespace of their own. */
  async function demand(count: number, tag = 'multi', there?: string): Promise<string> {
    const namespace = there ?? (await world.namespace(`leader-${++namespaces}`));
    await world.create(deployment(namespace, 'app', { images: [world.image(tag)], replicas: count }));
    return namespace;
  }

  const placed = (namespace: string, count: number) =>
    world.eventually(`${count} pods of ${namespace} to tolerate both architectures`, async () => {
      const pods = await world.pods(namespace, 'app');
      return pods.length === count && pods.every((pod) => tolerations(pod).join() === BOTH.join());
    });

  it('keep a leader that was paused beyond its lease from writing until it holds the lease again', async () => {
    const first = await start('--leaderElection.leaseDuration', '3s');
    await leading(first);
    await placed(await demand(2), 2);
    const second = await start('--leaderElection.leaseDuration', '3s');

    // Known to both already: what is tested must not wait for anything but the lease.
    const namespace = await world.namespace('leader-paused');
    first.controller.kill('SIGSTOP');
    await leading(second);
    // The present leader is paused as well: the first replica to wake up sees pods that nobody has placed.
    await placed(await demand(2), 2);
    second.controller.kill('SIGSTOP');
    await demand(10, 'multi', namespace);
    const before = first.proxy.writes().length;
    const seen = first.proxy.requests().length;
    // Nothing informs the first replica that it lost the Lease: it must notice that by its clock.
    const hold = first.proxy.hold((_method, path) => path.includes('/leases/'));
    const warned = () => first.controller.logs().filter((line) => line.includes('lease not renewed')).length;
    const warnings = warned();
    first.controller.kill('SIGCONT');
    await world.eventually('the first to ask for the lease in vain', async () => warned() > warnings);
    expect(first.proxy.writes().length - before, 'writes without a lease').to.equal(0);
    expect(await leads(first.controller)).to.equal(false);
    hold.release();
    await placed(namespace, 10);

    const since = first.proxy.requests().slice(seen);
    const took = since.findIndex(
      ({ method, path, status }) => method === 'PUT' && path.includes('/leases/') && status === 200,
    );
    const wrote = since.findIndex(({ method, path }) => method !== 'GET' && !path.includes('/leases'));
    expect(first.proxy.writes().length - before).to.be.at.least(10);
    expect(took, 'the lease was taken').to.be.at.least(0);
    expect(wrote, 'a write before the lease was taken').to.be.above(took);

    // The other one wakes up beside a live leader, with pods in its watches that were unplaced when it fell asleep.
    const [writes, asked] = [second.proxy.writes().length, second.proxy.requests().length];
    second.controller.kill('SIGCONT');
    await world.eventually(
      'the second to look at the lease again',
      async () =>
        second.proxy
          .requests()
          .slice(asked)
          .filter(({ method, path }) => method === 'GET' && path.includes('/leases/')).length >= 3,
    );
    await placed(await demand(2), 2);
    expect(second.proxy.writes().length).to.equal(writes);
    expect(await leads(second.controller)).to.equal(false);
    expect(second.controller.logs().filter((line) => line.includes('lease lost')).length).to.equal(1);
  });

  it('hand over at once on SIGTERM: writes under way end, then the lease is released', async () => {
    const first = await start();
    await leading(first);
    const second = await start();
    const hold = first.proxy.hold(isPodPatch);
    const namespace = await demand(30);
    await world.eventually('every worker to write', async () => hold.held() >= 16);
    const under = hold.held();
    first.controller.kill('SIGTERM');
    // It is still there while they are under way: it goes on renewing what it writes under.
    const renewals = first.proxy.leaseWrites().length;
    await world.eventually(
      'the lease to be renewed meanwhile',
      async () => first.proxy.leaseWrites().length > renewals,
    );
    expect(hold.held(), 'no new work').to.equal(under);
    expect(at(await lease(), 'spec', 'holderIdentity')).to.be.a('string').that.is.not.empty;
    hold.release();
    const released = performance.now();
    expect(await ended(first)).to.equal(0);
    await placed(namespace, 30);
    // Fifteen seconds is what a lease that was not released would have taken.
    expect(performance.now() - released).to.be.below(10_000);
    const patches = first.proxy.writes().filter(({ method, path }) => isPodPatch(method, path));
    expect(patches.length).to.equal(under);
    expect(patches.every(({ status, endedAs }) => status === 200 && endedAs > 0)).to.equal(true);
    const last = first.proxy.leaseWrites().at(-1);
    expect(last?.status).to.equal(200);
    expect(last?.endedAs).to.be.above(Math.max(...patches.map(({ endedAs }) => endedAs)));
    await leading(second);
  });

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    it(`end immediately on a second ${signal}, with exit code ${code}`, async () => {
      const first = await start();
      await leading(first);
      const hold = first.proxy.hold(isPodPatch);
      await demand(2);
      await world.eventually('writes to be under way', async () => hold.held() >= 2);
      first.controller.kill(signal);
      // Two signals of a kind that nobody has taken yet count as one; a process that answers has taken the first.
      for (let times = 0; times < 3; times++) await first.controller.get('/healthz');
      const told = performance.now();
      expect(await first.controller.stop(signal)).to.equal(code);
      expect(performance.now() - told).to.be.below(2_000);
      hold.release();
    });
  }
});
