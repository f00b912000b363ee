import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { IMAGES, SINGLES, type World } from './images.ts';
import { createAndWatch, podOf, quantile, removePods } from './load.ts';
import { cpuOf, peakOf } from './process.ts';
import { judge, type Measured, type Row, row } from './result.ts';
import { listed, median, type Rounds, ratios, ratioText } from './rounds.ts';
import { startOurs, startSubject, turns, type Who } from './subjects.ts';

/**
 * `warm`: the program has answered for a pod of each image before. `cold`: it has just started, and the images are not known. The
 * bare loop is started and warmed up alike. `created`: warm, and the policy `archaware-place` places pods when they are created.
 */
type Temperature = 'warm' | 'cold' | 'created';

/** CPU in milliseconds for a pod. */
type Figures = {
  readonly perSecond: Rounds;
  readonly cpuOfPod: Rounds;
  /** Milliseconds from a creation to its toleration: the median of each burst. */
  readonly delay: Rounds;
  /** CPU of the API server in milliseconds for a pod. */
  readonly server: Rounds;
};

/** The figures of the bursts of one temperature, and of the first burst after the start. Memory in MiB (VmHWM). */
type Bursts = Figures & { readonly first: Figures; readonly peak: Rounds; readonly registryRequests: number[] };

/** How many times as many pods follow the first burst. */
const LATER = 2;

const GOALS = {
  share: { warm: 0.95, cold: 0.9, created: 1.4 },
  /** Milliseconds, or times what the bare loop takes, whichever is more. */
  cpuMs: 0.5,
  cpuTimes: 1.5,
  created: { cpuMs: 0.3, delayMs: 5 },
  coldTimes: 1.4,
  peakMiB: 110,
};
/** The events of the last writes arrive in this time. */
const ECHO_MS = 500;

/** Creates pods as fast as the API server accepts them, and measures until each has its toleration. */
export async function measureBursts(world: World, pods: number, rounds: number): Promise<Measured> {
  const warm = await bursts(world, 'warm', pods, rounds);
  const cold = await bursts(world, 'cold', pods, rounds);
  const created = await bursts(world, 'created', pods, rounds);
  const coldCpu = median(cold.cpuOfPod.ours) / median(warm.first.cpuOfPod.ours);
  const peaks = [...warm.peak.ours, ...cold.peak.ours];
  const most = Math.max(...peaks);
  const requests = median(cold.registryRequests);
  return {
    rows: [
      ...rateRows('warm', warm, pods),
      ...rateRows('cold', cold, pods),
      ...rateRows('created', created, pods),
      ...[cpuRow('warm', warm), cpuRow('cold', cold), cpuRow('created', created)],
      row('until the toleration, created (p50)', milliseconds(median(created.delay.ours)), {
        bare: milliseconds(median(created.delay.bare)),
        ...judge(median(created.delay.ours), { atMost: GOALS.created.delayMs }, ' ms'),
      }),
      compared('CPU of the API server for a pod, warm', warm.server, milliseconds),
      compared('CPU of the API server for a pod, created', created.server, milliseconds),
      row('CPU of a placed pod, cold against warm', '', {
        ratio: coldCpu.toFixed(2),
        ...judge(coldCpu, { atMost: GOALS.coldTimes }),
      }),
      row('most memory in the bursts (VmHWM)', `${most.toFixed(0)} MiB`, {
        bare: `${Math.max(...warm.peak.bare, ...cold.peak.bare).toFixed(0)} MiB`,
        ratio: `(${listed(peaks, 0)})`,
        ...judge(most, { atMost: GOALS.peakMiB }, ' MiB'),
      }),
      row('registry requests of a cold burst', String(requests), judge(requests, { atMost: IMAGES + SINGLES })),
    ],
    figures: { pods, warm, cold, created },
  };
}

async function bursts(world: World, temperature: Temperature, count: number, rounds: number): Promise<Bursts> {
  const { cluster, registry, images } = world;
  const result: Bursts = { ...figures(), first: figures(), peak: { ours: [], bare: [] }, registryRequests: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const who of turns(round)) {
      const prefix = `${temperature}${round}${who}`;
      const isPlaced = temperature === 'created' && who === 'ours';
      const subject = isPlaced ? await startPublisher(world) : await startSubject(who, cluster, registry.host);
      if (temperature !== 'cold') await createAndWatch(cluster, { count: images.length, images, prefix: `w${prefix}` });
      if (isPlaced) await untilPlaced(world);
      await registry.forgetRequests();
      const { pid } = subject;
      await burst(world, { pid, who, count, prefix }, temperature === 'cold' ? result : result.first);
      if (temperature !== 'cold') await burst(world, { pid, who, count: count * LATER, prefix: `${prefix}l` }, result);
      result.peak[who].push(peakOf(subject.pid));
      if (who === 'ours') result.registryRequests.push((await registry.requests()).length);
      await subject.stop();
      await removePods(cluster);
      if (isPlaced) await cluster.kubectl(['delete', 'mutatingadmissionpolicybindings', '--all']);
      process.stderr.write(
        `burst, ${temperature} ${round + 1}, ${who}: ${result.perSecond[who].at(-1)?.toFixed(0)} pods/s\n`,
      );
    }
  }
  return result;
}

function figures(): Figures {
  const both = (): Rounds => ({ ours: [], bare: [] });
  return { perSecond: both(), cpuOfPod: both(), delay: both(), server: both() };
}

/** One burst: who placed how many pods, and with which process. */
type Burst = { readonly pid: number; readonly who: Who; readonly count: number; readonly prefix: string };

async function burst({ cluster, images }: World, { pid, who, count, prefix }: Burst, into: Figures): Promise<void> {
  const used = () => [cpuOf(pid), cpuOf(cluster.component('kube-apiserver').pid)] as const;
  const before = used();
  const { totalMs, delays } = await createAndWatch(cluster, { count, images, prefix });
  await delay(ECHO_MS);
  const [cpu, server] = used();
  into.cpuOfPod[who].push((cpu - before[0]) / count);
  into.server[who].push((server - before[1]) / count);
  into.perSecond[who].push((count / totalMs) * 1000);
  into.delay[who].push(quantile(delays, 0.5));
}

/** Starts the controller with the policy that places pods when they are created. */
async function startPublisher({ cluster, registry }: World) {
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'archaware' } }));
  await cluster.apply(await readFile(new URL('../../manifests/publish.yaml', import.meta.url), 'utf8'));
  return startOurs(cluster, registry.host, true);
}

/** Waits until the policy uses what the leader has published, of every image. */
async function untilPlaced({ cluster, images }: World): Promise<void> {
  for (const image of images) {
    await cluster.waitFor(`${image} to be placed when created`, async () => {
      const { body } = await cluster.request('POST', '/api/v1/namespaces/bench/pods?dryRun=All', podOf('tried', image));
      return JSON.stringify(body).includes('supported-arch');
    });
  }
}

/** A row with the medians of both, and the ratio of each round. */
function compared(what: string, figure: Rounds, shown: (value: number) => string, goal: Partial<Row> = {}) {
  const [ours, bare, all] = [median(figure.ours), median(figure.bare), ratios(figure)];
  return row(what, shown(ours), { bare: shown(bare), ratio: ratioText(median(all), all), ...goal });
}

const rate = (value: number) => `${value.toFixed(0)} pods/s`;
const milliseconds = (value: number) => `${value.toFixed(2)} ms`;

/** The rates of the measured bursts, and of the first burst after a start, in which a new process compiles its code. */
function rateRows(temperature: Temperature, { perSecond, first }: Bursts, pods: number) {
  const goal = judge(median(ratios(perSecond)), { atLeast: GOALS.share[temperature] });
  if (temperature === 'cold') return [compared(`${pods} pods at once, cold`, perSecond, rate, goal)];
  return [
    compared(`${pods * LATER} pods at once, ${temperature}`, perSecond, rate, goal),
    compared(`the first ${pods} after a start, ${temperature}`, first.perSecond, rate),
    compared(`CPU of these, ${temperature}`, first.cpuOfPod, milliseconds),
  ];
}

function cpuRow(temperature: Temperature, { cpuOfPod }: Bursts) {
  const most = Number(Math.max(GOALS.cpuMs, GOALS.cpuTimes * median(cpuOfPod.bare)).toFixed(2));
  const atMost = temperature === 'warm' ? most : GOALS.created.cpuMs;
  // The goal of a cold pod is relative to a warm one.
  const goal = temperature === 'cold' ? {} : judge(median(cpuOfPod.ours), { atMost }, ' ms');
  return compared(`CPU of a placed pod, ${temperature}`, cpuOfPod, milliseconds, goal);
}
