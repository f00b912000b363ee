import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { arrangeHelm, CHART_PATH, type Helm, RELEASE } from '../e2e/support/helm.ts';
import { restartUnderStream, reviewsPods } from '../e2e/support/real-checks.ts';
import { realWorldForAll } from '../e2e/support/real-world.ts';
import { isTrusted } from '../support/webhook.ts';

const RESTARTS = Number(process.env.ARCHAWARE_RESTARTS || 5);
const PODS_PER_SECOND = 20;
/** What Kubernetes' own pods and two replicas request on the node during a restart, in millicores, and a little more. */
const NOT_FOR_OTHERS = 600;
/** The part of the machine's processor time that the node has. */
const OF_MACHINE = 0.7;
const PERIOD_US = 20_000;
/** The most that Linux takes: more than all other processes of the machine together. */
const MOST_SHARES = 256 * 1024;
const BUSY = 'busy';
const STREAM = 'shop';

/** A node whose processor time others have requested, and use: each pod gets what it requests, and no more. */
describe('a rolling restart on a busy real node', function () {
  this.timeout(300_000);
  const { real, world } = realWorldForAll();
  let helm: Helm;
  let image: string;

  before(async () => {
    helm = await arrangeHelm(world.cluster.kubeconfig);
    image = world.image(`index-${real.other}`);
    const config = {
      placement: { mode: 'both' },
      webhook: { enabled: true },
      registries: { insecure: [world.registry.nodeHost] },
    };
    const install = ['install', ...RELEASE, CHART_PATH, '--create-namespace', '--wait', '--timeout', '2m'];
    await helm.must(install, { image: await real.image(), config });
    await world.eventually('every webhook to have a caBundle', () => isTrusted(world));
    for (const name of [BUSY, STREAM]) await world.namespace(name);
    await world.eventually('a new pod to be reviewed', () => reviewsPods(world, STREAM, image));
    await giveProcessorTime();
    await makeBusy();
  });
  after(() => helm?.remove());

  /**
   * Gives the node a fixed part of this machine, whatever else runs here. The rest is for this process, which creates the pods. The
   * node and its control plane are in one cgroup, which would otherwise get as much as one other process of the machine.
   */
  async function giveProcessorTime(): Promise<void> {
    const tree = real.node.enter.find((word) => word.startsWith('archaware-node.')) ?? '';
    const write = (file: string, value: number) =>
      writeFile(join('/sys/fs/cgroup/cpu', tree, file), String(Math.round(value)));
    await write('cpu.shares', MOST_SHARES);
    await write('cpu.cfs_period_us', PERIOD_US);
    await write('cpu.cfs_quota_us', PERIOD_US * OF_MACHINE * availableParallelism());
  }

  /** Runs a pod for each core that never sleeps. Together they request what is left. */
  async function makeBusy(): Promise<void> {
    const node = await world.node(real.node.name);
    const cores = Number(at(node, 'status', 'allocatable', 'cpu'));
    const { repository, digest } = await real.image();
    const requests = { cpu: `${Math.floor((cores * 1000 - NOT_FOR_OTHERS) / cores)}m` };
    const spin = ['node', '-e', 'for (;;);'];
    const main = { name: 'main', image: `${repository}@${digest}`, command: spin, resources: { requests } };
    const spec = {
      nodeSelector: { 'kubernetes.io/hostname': real.node.name },
      terminationGracePeriodSeconds: 1,
      containers: [main],
    };
    const pods = Array.from({ length: cores }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `spins-${index}`, namespace: BUSY },
      spec,
    }));
    await world.create(...pods);
    await real.kubectl('-n', BUSY, 'wait', 'pod', '--all', '--for=condition=Ready', '--timeout=60s');
  }

  it(`loses no review in ${RESTARTS} restarts, at ${PODS_PER_SECOND} pods a second`, async () => {
    await restartUnderStream(real, { restarts: RESTARTS, namespace: STREAM, image, perSecond: PODS_PER_SECOND });
    const busy = await world.list('Pod', BUSY);
    const stillBusy = busy.filter((one) => at(one, 'status', 'phase') === 'Running');
    expect(stillBusy.length, 'busy pods').to.equal(busy.length).and.to.be.above(0);
  }).timeout(60_000 + RESTARTS * 120_000);
});
