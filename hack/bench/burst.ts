import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { IMAGES, SINGLES, type World } from './images.ts';
import { createAndWatch, podOf, quantile, removePods } from './load.ts';
import { cpuOf, peakOf } from './process.ts';
import { judge, type Measured, row } from './result.ts';
import { listed, median, type Rounds, ratios, ratioText } from './rounds.ts';
import { startOurs, startSubject, turns } from './subjects.ts';

/**
 * `warm`: the program has answered for a pod of each image before. `cold`: it has just started, and the images are not known. The
 * bare loop is started and warmed up alike. `created`: warm, and the policy `archaware-place` places pods when they are created.
 */
type Temperature = 'warm' | 'cold' | 'created';

/** The figures of the bursts of one temperature. CPU in milliseconds for a pod, memory in MiB (VmHWM). */
type Bursts = {
  readonly perSecond: Rounds;
  readonly cpuOfPod: Rounds;
  readonly peak: Rounds;
  /** Milliseconds from a creation to its toleration: the median of each burst. */
  readonly delay: Rounds;
  /** CPU of the API server in milliseconds for a pod. */
  readonly server: Rounds;
  readonly registryRequests: number[];
};

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
  const coldCpu = median(cold.cpuOfPod.ours) / median(warm.cpuOfPod.ours);
  const peaks = [...warm.peak.ours, ...cold.peak.ours];
  const most = Math.max(...peaks);
  const requests = median(cold.registryRequests);
  return {
    rows: [
      rateRow('warm', warm, pods),
      rateRow('cold', cold, pods),
      cpuRow('warm', warm),
      cpuRow('cold', cold),
      rateRow('created', created, pods),
      cpuRow('created', created),
      row('until the toleration, created (p50)', `${median(created.delay.ours).toFixed(1)} ms`, {
        bare: `${median(created.delay.bare).toFixed(1)} ms`,
        ...judge(median(created.delay.ours), { atMost: GOALS.created.delayMs }, ' ms'),
      }),
      ...[warm, created].map(({ server }, index) =>
        row(
          `CPU of the API server for a pod, ${index === 0 ? 'warm' : 'created'}`,
          `${median(server.ours).toFixed(1)} ms`,
          {
            bare: `${median(server.bare).toFixed(1)} ms`,
            ratio: ratioText(median(ratios(server)), ratios(server)),
          },
        ),
      ),
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
  const both = (): Rounds => ({ ours: [], bare: [] });
  const result: Bursts = {
    ...{ perSecond: both(), cpuOfPod: both(), peak: both(), delay: both(), server: both() },
    registryRequests: [],
  };
  const server = () => cpuOf(cluster.component('kube-apiserver').pid);
  for (let round = 0; round < rounds; round += 1) {
    for (const who of turns(round)) {
      const prefix = `${temperature}${round}${who}`;
      const isPlaced = temperature === 'created' && who === 'ours';
      const subject = isPlaced ? await startPublisher(world) : await startSubject(who, cluster, registry.host);
      if (temperature !== 'cold') await createAndWatch(cluster, { count: images.length, images, prefix: `w${prefix}` });
      if (isPlaced) await untilPlaced(world);
      await registry.forgetRequests();
      const [cpu, serverCpu] = [cpuOf(subject.pid), server()];
      const { totalMs, delays } = await createAndWatch(cluster, { count, images, prefix });
      await delay(ECHO_MS);
      result.cpuOfPod[who].push((cpuOf(subject.pid) - cpu) / count);
      result.perSecond[who].push((count / totalMs) * 1000);
      result.server[who].push((server() - serverCpu) / count);
      result.delay[who].push(quantile(delays, 0.5));
      result.peak[who].push(peakOf(subject.pid));
      if (who === 'ours') result.registryRequests.push((await registry.requests()).length);
      await subject.stop();
      await removePods(cluster);
      if (isPlaced) await cluster.kubectl(['delete', 'mutatingadmissionpolicybindings', '--all']);
      const [rate, used] = [result.perSecond[who].at(-1) ?? 0, result.cpuOfPod[who].at(-1) ?? 0];
      process.stderr.write(
        `burst, ${temperature} ${round + 1}, ${who}: ${rate.toFixed(0)} pods/s, ${used.toFixed(2)} ms\n`,
      );
    }
  }
  return result;
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

function rateRow(temperature: Temperature, { perSecond }: Bursts, pods: number) {
  const rounds = ratios(perSecond);
  return row(`${pods} pods at once, ${temperature}`, `${median(perSecond.ours).toFixed(0)} pods/s`, {
    bare: `${median(perSecond.bare).toFixed(0)} pods/s`,
    ratio: ratioText(median(rounds), rounds),
    ...judge(median(rounds), { atLeast: GOALS.share[temperature] }),
  });
}

function cpuRow(temperature: Temperature, { cpuOfPod }: Bursts) {
  const [ours, bare] = [median(cpuOfPod.ours), median(cpuOfPod.bare)];
  const rounds = ratios(cpuOfPod);
  const most = Math.max(GOALS.cpuMs, GOALS.cpuTimes * bare);
  return row(`CPU of a placed pod, ${temperature}`, `${ours.toFixed(2)} ms`, {
    bare: `${bare.toFixed(2)} ms`,
    ratio: ratioText(median(rounds), rounds),
    // The goal of a cold pod is relative to a warm one.
    ...(temperature === 'cold'
      ? {}
      : judge(ours, { atMost: temperature === 'warm' ? Number(most.toFixed(2)) : GOALS.created.cpuMs }, ' ms')),
  });
}
