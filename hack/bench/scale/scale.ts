// Measures the controller on big clusters that a process of its own simulates, because etcd and kwok are what limits on a small
// machine. Usage: npm run bench -- scale [--pods N --nodes N]; without --pods: four sizes and a picture of the curve.
import { parseArgs } from 'node:util';
import { type ImageFixture, multiPlatform } from '../../../testimg/build.ts';
import { startLimitedRegistry } from '../limited-registry.ts';
import { printTable } from '../table.ts';
import { type Cost, measureSize, type Size } from './measure.ts';

const REPOSITORY = 'bench';
const HEARTBEAT_SECONDS = 10;
/** Status updates of pods in a second for each pod: 200 at 100,000 pods. */
const UPDATES_PER_POD = 1 / 500;

/** Runs the benchmark and prints its table. */
export async function benchScale(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      pods: { type: 'string', default: '100000' },
      nodes: { type: 'string' },
      images: { type: 'string', default: '500' },
      seconds: { type: 'string', default: '20' },
    },
  });
  const pods = Number(values.pods);
  const nodes = values.nodes === undefined ? Math.ceil(pods / 20) : Number(values.nodes);
  const size: Size = {
    pods,
    nodes,
    images: Number(values.images),
    heartbeats: nodes / HEARTBEAT_SECONDS,
    updates: pods * UPDATES_PER_POD,
    seconds: Number(values.seconds),
  };
  const registry = await startLimitedRegistry({
    images: images(size.images),
    repository: REPOSITORY,
    delayMs: 0,
    perWindow: Number.POSITIVE_INFINITY,
    windowMs: 1_000,
  });
  try {
    const cost = await measureSize(size, `${registry.host}/${REPOSITORY}`, (line) => process.stderr.write(`${line}\n`));
    printTable([['what', 'measured', 'goal'], ...rowsOf(cost)]);
  } finally {
    await registry.stop();
  }
}

function images(count: number): Map<string, ImageFixture> {
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  return new Map(
    Array.from({ length: count }, (_, index) => {
      const tag = `t${String(index).padStart(4, '0')}`;
      return [tag, multiPlatform(platforms, { note: tag })];
    }),
  );
}

function rowsOf(cost: Cost): string[][] {
  const lists = Object.entries(cost.lists).map(([kind, count]) => `${kind} ${count}`);
  return [
    ['start to ready', `${(cost.readyMs / 1000).toFixed(1)} s`, 'under 10 s'],
    ['lists', lists.join(', '), 'at most one of each'],
    ['most memory at the start (VmHWM)', `${cost.startPeak.toFixed(0)} MiB`, ''],
    ['CPU until all pods are decided', `${(cost.startCpuMs / 1000).toFixed(1)} s`, ''],
    ['idle', `${cost.idle.toFixed(2)} %`, 'under 0.5 %'],
    ['requests meanwhile but watches and Lease', String(cost.idleRequests), '0'],
    [
      `CPU with ${cost.size.heartbeats} heartbeats/s and ${cost.size.updates} updates/s`,
      `${cost.load.toFixed(2)} %`,
      'at most 5 %',
    ],
    ['probe meanwhile, p99', `${cost.probeP99Ms.toFixed(1)} ms`, 'under 20 ms'],
    ['CPU of a placed pod', `${cost.cpuOfPlacedPod.toFixed(2)} ms`, ''],
    ['CPU of a joining node', `${cost.cpuOfKnownNode.toFixed(2)} ms`, 'under 1 ms'],
    ['the same, new architecture', `${cost.cpuOfNewNode.toFixed(2)} ms`, 'under 1 ms'],
    ['memory at the end (VmRSS)', `${cost.rss.toFixed(0)} MiB`, 'at most 200 MiB'],
    ['most memory (VmHWM)', `${cost.peak.toFixed(0)} MiB`, ''],
  ];
}
