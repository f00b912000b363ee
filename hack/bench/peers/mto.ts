import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import type { Cluster } from '../../cluster/cluster.ts';
import { freePorts } from '../../cluster/ports.ts';
import { binaries, type Component, startComponent } from '../../cluster/spawn.ts';
import { quantile, removePods } from '../load.ts';
import { cpuOf, peakOf } from '../process.ts';
import { startBare } from '../subjects.ts';
import type { World } from '../world.ts';
import { createAndRelease } from './releases.ts';

/** The name of its binary: multiarch-tuning-operator. Its custom resource definitions are beside it. */
export const MTO = 'mto';
const GATE = 'multiarch.openshift.io/scheduling-gate';
const PER_SECOND = 20;
/** Images need no signature. */
const POLICY = JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] });
const CONFIGURATION = {
  apiVersion: 'multiarch.openshift.io/v1beta1',
  kind: 'ClusterPodPlacementConfig',
  metadata: { name: 'cluster' },
  spec: { logVerbosity: 'Normal' },
};

/** `barePerSecond`: the bare loop that releases the same pods. CPU in milliseconds for a pod, memory in MiB (VmHWM). */
export type MtoFigures = {
  readonly perSecond: number;
  readonly barePerSecond: number;
  readonly cpuOfPod: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly peak: number;
};

/**
 * Measures the controller that looks images up and releases pods; its webhook only adds the gate, which these pods have. The
 * figures are of images that it knows.
 */
export async function measureMto(world: World, pods: number, seconds: number): Promise<MtoFigures> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  try {
    const bare = await startBare(world.cluster, 'release');
    const loop = await releaseAtOnce(world, bare.pid, pods).finally(() => bare.stop());
    const mto = await startMto(world, directory);
    try {
      const atOnce = await releaseAtOnce(world, mto.pid, pods);
      const delays = await releaseSteadily(world, PER_SECOND * seconds);
      const [p50Ms, p99Ms] = [quantile(delays, 0.5), quantile(delays, 0.99)];
      return { ...atOnce, barePerSecond: loop.perSecond, p50Ms, p99Ms, peak: peakOf(mto.pid) };
    } finally {
      await mto.stop();
    }
  } finally {
    await removePods(world.cluster);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Creates a pod of each image, and then all others as fast as the API server accepts them. */
async function releaseAtOnce({ cluster, images }: World, pid: number, count: number) {
  await createAndRelease(cluster, { images, gate: GATE, count: images.length, prefix: 'warm' });
  const cpu = cpuOf(pid);
  const { totalMs } = await createAndRelease(cluster, { images, gate: GATE, count, prefix: 'burst' });
  const cpuOfPod = (cpuOf(pid) - cpu) / count;
  await removePods(cluster);
  return { perSecond: (count / totalMs) * 1000, cpuOfPod };
}

async function releaseSteadily({ cluster, images }: World, count: number): Promise<readonly number[]> {
  const gated = { images, gate: GATE, count, perSecond: PER_SECOND, prefix: 'steady' };
  return (await createAndRelease(cluster, gated)).delays;
}

async function startMto({ cluster, registry }: World, directory: string): Promise<Component> {
  await createConfiguration(cluster);
  const files = { policy: join(directory, 'policy.json'), registries: join(directory, 'registries.conf') };
  await writeFile(files.policy, POLICY);
  await writeFile(files.registries, `[[registry]]\nlocation = "${registry.host}"\ninsecure = true\n`);
  const [health = 0] = await freePorts(1);
  return startComponent({
    name: MTO,
    directory,
    args: [
      '--enable-ppc-controllers',
      '--enable-cppc-informer',
      '--metrics-bind-address=0',
      `--health-probe-bind-address=127.0.0.1:${health}`,
    ],
    // Without these files it would read those of /etc/containers.
    env: {
      KUBECONFIG: cluster.kubeconfig,
      POLICY_CONF_PATH: files.policy,
      REGISTRIES_CONF_PATH: files.registries,
    },
    ready: async () => (await request(`http://127.0.0.1:${health}/readyz`)).statusCode === 200,
  });
}

async function createConfiguration(cluster: Cluster): Promise<void> {
  await cluster.apply(await readFile(join(binaries(), `${MTO}-crds.yaml`), 'utf8'));
  const path = `/apis/${CONFIGURATION.apiVersion}/clusterpodplacementconfigs`;
  await cluster.waitFor('the configuration of MTO', async () => {
    const { status } = await cluster.request('POST', path, CONFIGURATION);
    return status === 201;
  });
}
