import { setTimeout as delay } from 'node:timers/promises';
import { IMAGES, SINGLES } from './images.ts';
import { createAndWatch, removePods } from './load.ts';
import { cpuOf, peakOf } from './process.ts';
import { judge, type Measured, row } from './result.ts';
import { listed, median, type Rounds, ratios, ratioText } from './rounds.ts';
import { startSubject, turns } from './subjects.ts';
import type { World } from './world.ts';

/**
 * `warm`: the program has answered for a pod of each image before. `cold`: it has just started, and the images are not known. The
 * bare loop is started and warmed up alike.
 */
export type Temperature = 'warm' | 'cold';

/** The figures of the bursts of one temperature. CPU in milliseconds for a pod, memory in MiB (VmHWM). */
type Bursts = {
  readonly perSecond: Rounds;
  readonly cpuOfPod: Rounds;
  readonly peak: Rounds;
  readonly registryRequests: number[];
};

const GOALS = {
  share: { warm: 0.95, cold: 0.9 },
  /** Milliseconds, or times what the bare loop takes, whichever is more. */
  cpuMs: 0.5,
  cpuTimes: 1.5,
  coldTimes: 1.4,
  peakMiB: 110,
};
/** The events of the last writes arrive in this time. */
const ECHO_MS = 500;

/** Creates pods as fast as the API server accepts them, and measures until each has its toleration. */
export async function measureBursts(world: World, pods: number, rounds: number): Promise<Measured> {
  const warm = await bursts(world, 'warm', pods, rounds);
  const cold = await bursts(world, 'cold', pods, rounds);
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
    figures: { pods, warm, cold },
  };
}

async function bursts(world: World, temperature: Temperature, count: number, rounds: number): Promise<Bursts> {
  const { cluster, registry, images } = world;
  const both = (): Rounds => ({ ours: [], bare: [] });
  const result: Bursts = { perSecond: both(), cpuOfPod: both(), peak: both(), registryRequests: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const who of turns(round)) {
      const prefix = `${temperature}${round}${who}`;
      const subject = await startSubject(who, cluster, registry.host);
      if (temperature === 'warm') await createAndWatch(cluster, { count: images.length, images, prefix: `w${prefix}` });
      await registry.forgetRequests();
      const cpu = cpuOf(subject.pid);
      const { totalMs } = await createAndWatch(cluster, { count, images, prefix });
      await delay(ECHO_MS);
      result.cpuOfPod[who].push((cpuOf(subject.pid) - cpu) / count);
      result.perSecond[who].push((count / totalMs) * 1000);
      result.peak[who].push(peakOf(subject.pid));
      if (who === 'ours') result.registryRequests.push((await registry.requests()).length);
      await subject.stop();
      await removePods(cluster);
      const [rate, used] = [result.perSecond[who].at(-1) ?? 0, result.cpuOfPod[who].at(-1) ?? 0];
      process.stderr.write(
        `burst, ${temperature} ${round + 1}, ${who}: ${rate.toFixed(0)} pods/s, ${used.toFixed(2)} ms\n`,
      );
    }
  }
  return result;
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
    ...(temperature === 'warm' ? judge(ours, { atMost: Number(most.toFixed(2)) }, ' ms') : {}),
  });
}
