import { expect } from 'chai';
import { ours, tolerations } from '../support/objects.ts';
import { leads, type RunningController } from '../support/running.ts';
import { deployment } from '../support/workloads.ts';
import type { ApiProxy } from './support/api-proxy.ts';
import { createReplicas, type Replicas } from './support/replicas.ts';
import { worldForAll } from './support/world.ts';

const BOTH = ours('amd64', 'arm64');
const KINDS = ['pods', 'nodes', 'namespaces', 'daemonsets'] as const;
const isWatch = ({ path }: { readonly path: string }) => path.includes('watch=true');
const isList = ({ method, path }: { readonly method: string; readonly path: string }) =>
  method === 'GET' && path.includes('limit=') && !isWatch({ path });

describe('recovery', () => {
  const world = worldForAll();
  let replicas: Replicas;
  let proxy: ApiProxy;
  let controller: RunningController;
  let namespaces = 0;

  before(async () => {
    const flags = ['--leaderElection.leaseDuration', '3s', '--log.level', 'debug'];
    const insecure = ['--registries.insecure', world.registry.host];
    replicas = createReplicas(world.cluster, world.kubeconfig, [...insecure, ...flags]);
  });

  beforeEach(async () => {
    ({ controller, proxy } = await replicas.start());
    await leading();
  });

  afterEach(async () => {
    for (const replica of replicas.all()) await replicas.end(replica, 'SIGTERM');
  });

  const leading = () => world.eventually('the controller to lead', () => leads(controller));
  const idle = () => world.eventually('the controller to lead no more', async () => !(await leads(controller)));
  const restarts = (kind: string) => controller.metric('archaware_watch_restarts_total', { kind });
  /** Lines at the level that is the default; the tests let it log more, to see why. */
  const told = () => controller.logs().filter((line) => !line.includes('"level":"debug"'));

  /**
   * What it said from the line `from` on, without what grows with the work and with the time that an outage takes: a
   * line for each pod that it placed, and one for each attempt to renew the Lease, which come at the Lease's own pace.
   */
  const noise = (from: number) =>
    told()
      .slice(from)
      .filter((line) => !line.includes('"msg":"reconciled"') && !line.includes('"msg":"lease not renewed"'));

  async function demand(count: number): Promise<string> {
    const namespace = await world.namespace(`recovery-${++namespaces}`);
    await world.create(deployment(namespace, 'app', { images: [world.image('multi')], replicas: count }));
    return namespace;
  }

  const placed = (namespace: string, count: number, app = 'app') =>
    world.eventually(`${count} pods of ${namespace} to tolerate both architectures`, async () => {
      const pods = await world.pods(namespace, app);
      return pods.length === count && pods.every((entry) => tolerations(entry).join() === BOTH.join());
    });

  /** What it wrote after `seen` writes, in words; each should be there once. */
  const wroteSince = (seen: number) =>
    proxy
      .writes()
      .slice(seen)
      .map(({ method, path }) => `${method} ${path.split('?')[0]}`);

  it('loses its lease while the API server hangs, and works again when it answers', async () => {
    const server = world.cluster.component('kube-apiserver');
    server.kill('SIGSTOP');
    try {
      await idle();
    } finally {
      server.kill('SIGCONT');
    }
    await placed(await demand(2), 2);
    await leading();
  });

  // Below: what Kubernetes' own controllers need some time to recover from, too.

  it('survives an API server that is stopped and started, and serves new pods without a storm', async () => {
    await placed(await demand(20), 20);
    const [writes, lines] = [proxy.writes().length, told().length];
    await world.cluster.stopApiServer();
    await idle();
    // Every watch has failed a few times by then, and nothing else is asked.
    await world.eventually('watches to be tried again', async () => (await restarts('pods')) >= 4);
    const requests = proxy.requests().length;
    await world.cluster.startApiServer();
    const namespace = await demand(5);
    await placed(namespace, 5);
    await leading();

    const wrote = wroteSince(writes);
    expect(wrote.filter((line) => line.includes(`/namespaces/${namespace}/pods/`)).length).to.equal(5);
    expect(wrote.filter((line) => !line.includes(`/namespaces/${namespace}/pods/`))).to.deep.equal([]);
    const since = proxy.requests().slice(requests);
    expect(since.filter(isList).length).to.be.below(20);
    expect(since.filter(isWatch).length).to.be.below(40);
    // For each kind: the watch fails, is too old once more, and works again.
    expect(noise(lines), noise(lines).join('\n')).to.have.length.below(5 * KINDS.length);
  });
});
