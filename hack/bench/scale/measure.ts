import { setTimeout as delay } from 'node:timers/promises';
import { startController } from '../../../test/support/controller-process.ts';
import type { RunningController } from '../../../test/support/running.ts';
import { waitFor } from '../../cluster/wait.ts';
import { quantile } from '../load.ts';
import { cpuOf, peakOf, residentOf } from '../process.ts';
import { type BigCluster, startBigCluster } from './cluster.ts';
import type { Shape } from './objects.ts';

/** The size of a cluster, and what happens in it. */
export type Size = {
  readonly pods: number;
  readonly nodes: number;
  readonly images: number;
  /** Node status updates in a second: each node sends one every 5 minutes. */
  readonly heartbeats: number;
  /** Status updates of pods in a second. */
  readonly updates: number;
  /** The length of each window with and without load. */
  readonly seconds: number;
  /** `--max-old-space-size`, as the manifests set it; 0: the default of Node.js. */
  readonly heapMiB: number;
};

/** What one size costs. CPU in milliseconds or in per cent of a core, memory in MiB. */
export type Cost = {
  readonly size: Size;
  readonly readyMs: number;
  /** CPU from the start until every pod is decided. */
  readonly startCpuMs: number;
  /** List requests that began, by resource. */
  readonly lists: Readonly<Record<string, number>>;
  readonly startPeak: number;
  readonly idle: number;
  /** Requests in the idle window that are neither a watch nor about the Lease. */
  readonly idleRequests: number;
  readonly load: number;
  /** The delay of an answer to a probe while the load flows: the time that it waits for the event loop. */
  readonly probeP99Ms: number;
  readonly cpuOfPlacedPod: number;
  readonly cpuOfKnownNode: number;
  readonly cpuOfNewNode: number;
  readonly rss: number;
  readonly peak: number;
};

const BURST = 1_000;
/** About as many as an API server on this machine creates. */
const PER_SECOND = 500;
const JOINING = 200;
const PROBES_PER_SECOND = 50;
const START_MS = 180_000;

/** Starts a cluster of this size and the controller, and measures. */
export async function measureSize(size: Size, repository: string, say: (line: string) => void): Promise<Cost> {
  const { pods, nodes, images } = size;
  const shape: Shape = { pods, nodes, images, repository };
  const cluster = await startBigCluster(shape);
  try {
    return await measure(cluster, size, repository, say);
  } finally {
    await cluster.stop();
  }
}

async function measure(
  cluster: BigCluster,
  size: Size,
  repository: string,
  say: (line: string) => void,
): Promise<Cost> {
  const { ask } = cluster;
  const started = performance.now();
  const flags = ['--kubeconfig', cluster.kubeconfig, '--registries.insecure', repository.split('/')[0] ?? ''];
  const heap = { NODE_OPTIONS: `--max-old-space-size=${size.heapMiB}` };
  const controller = await startController(flags, size.heapMiB > 0 ? { environment: heap } : {});
  const { pid } = controller;
  try {
    const readyMs = performance.now() - started;
    const startPeak = peakOf(pid);
    const lists = listsIn(await ask('requests'));
    say(`ready after ${(readyMs / 1000).toFixed(1)} s, ${residentOf(pid).toFixed(0)} MiB`);
    await learnImages(cluster, controller, size.images);
    const startCpuMs = cpuOf(pid);
    say(`settled after ${((performance.now() - started) / 1000).toFixed(1)} s, ${startCpuMs} ms of CPU`);
    await ask('forgetRequests');
    const idle = await share(pid, size.seconds);
    const idleRequests = requestsBut(await ask('requests'));
    say(`idle: ${idle.toFixed(2)} %`);
    const cpuOfPlacedPod = (await burst(cluster, controller, BURST, PER_SECOND)) / BURST;
    say(`placed pod: ${cpuOfPlacedPod.toFixed(2)} ms`);
    await ask('load', size);
    await delay(2_000);
    const load = await share(pid, size.seconds);
    const probeP99Ms = quantile(await probe(controller, size.seconds), 0.99);
    await ask('load', { heartbeats: 0, updates: 0 });
    say(`load: ${load.toFixed(2)} %, p99 of probes ${probeP99Ms.toFixed(1)} ms`);
    const cpuOfKnownNode = (await join(cluster, controller, 'amd64')) / JOINING;
    const cpuOfNewNode = (await join(cluster, controller, 'riscv64')) / JOINING;
    say(`node: ${cpuOfKnownNode.toFixed(2)} ms, of a new architecture ${cpuOfNewNode.toFixed(2)} ms`);
    const [rss, peak] = [residentOf(pid), peakOf(pid)];
    const windows = { idle, idleRequests, load, probeP99Ms, cpuOfPlacedPod, cpuOfKnownNode, cpuOfNewNode };
    return { size, readyMs, startCpuMs, lists, startPeak, ...windows, rss, peak };
  } finally {
    await controller.stop();
  }
}

/** Creates a pod of each image: they are looked up at once, and then all running pods of these images are decided, too. */
async function learnImages(cluster: BigCluster, controller: RunningController, images: number): Promise<void> {
  await waitFor('a leader', async () => (await controller.metric('archaware_leader')) === 1, START_MS);
  await burst(cluster, controller, images, PER_SECOND);
  await settle(controller);
}

/** Waits until no pod waits and no key is queued. */
async function settle(controller: RunningController): Promise<void> {
  const settled = async () => {
    const waiting = await controller.metric('archaware_pods', { outcome: 'waiting' });
    return waiting === 0 && (await controller.metric('archaware_workqueue_depth')) === 0;
  };
  await waitFor('decided pods', settled, START_MS);
  await delay(1_000);
}

/** Creates pods, and returns the CPU of the controller until all of them have their tolerations. */
async function burst(
  { ask }: BigCluster,
  { pid }: RunningController,
  count: number,
  perSecond: number,
): Promise<number> {
  const before = (await ask('patched')).pods;
  const cpu = cpuOf(pid);
  await ask('create', { count, perSecond });
  await waitFor('placed pods', async () => (await ask('patched')).pods - before >= count, START_MS);
  // The event of the last patch.
  await delay(500);
  return cpuOf(pid) - cpu;
}

/** Adds nodes, and returns the CPU of the controller until all of them have their taint. */
async function join({ ask }: BigCluster, { pid }: RunningController, architecture: string): Promise<number> {
  const before = (await ask('patched')).nodes;
  const cpu = cpuOf(pid);
  await ask('join', { count: JOINING, architecture });
  await waitFor('tainted nodes', async () => (await ask('patched')).nodes - before >= JOINING, START_MS);
  await delay(1_000);
  return cpuOf(pid) - cpu;
}

/** The CPU of a process in a window, in per cent of a core. */
async function share(pid: number, seconds: number): Promise<number> {
  const [cpu, started] = [cpuOf(pid), performance.now()];
  await delay(seconds * 1_000);
  return ((cpuOf(pid) - cpu) / (performance.now() - started)) * 100;
}

/** Asks for /healthz at a steady rate; returns the milliseconds of each answer. */
async function probe(controller: RunningController, seconds: number): Promise<number[]> {
  const delays: number[] = [];
  const asked: Promise<void>[] = [];
  const started = performance.now();
  for (let index = 0; index < seconds * PROBES_PER_SECOND; index += 1) {
    await delay(started + (index * 1_000) / PROBES_PER_SECOND - performance.now());
    const sent = performance.now();
    asked.push(controller.get('/healthz').then(() => void delays.push(performance.now() - sent)));
  }
  await Promise.all(asked);
  return delays;
}

function listsIn(requests: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(requests).flatMap(([key, count]) => (key.startsWith('LIST ') ? [[key.slice(5), count]] : [])),
  );
}

function requestsBut(requests: Readonly<Record<string, number>>): number {
  return Object.entries(requests).reduce(
    (sum, [key, count]) => (key.startsWith('WATCH ') || key.endsWith(' leases') ? sum : sum + count),
    0,
  );
}
