import { quantile } from './load.ts';
import { cpuOf, residentOf } from './process.ts';
import { judge, type Measured, row } from './result.ts';
import { sendAtRate, type Target } from './review-load.ts';
import { median } from './rounds.ts';

const PER_SECOND = 2_000;
/** The connections are opened again after this time, as those of an API server sometimes are. */
const SLICE_SECONDS = 10;
/** How much more the last third may use than the second one. The first third may grow. */
const GROWTH = 1.05;

/** Sends 2,000 reviews in a second for some minutes, and compares the memory of the process over the time. */
export async function measureFlat(
  target: Target,
  pid: number,
  images: readonly string[],
  minutes: number,
): Promise<Measured> {
  const memory: number[] = [];
  const p99: number[] = [];
  const rates: number[] = [];
  const [cpu, started] = [cpuOf(pid), performance.now()];
  for (let slice = 0; slice < (minutes * 60) / SLICE_SECONDS; slice += 1) {
    process.stderr.write(`${PER_SECOND} reviews/s, ${slice * SLICE_SECONDS} of ${minutes * 60} s\n`);
    const load = { images, perSecond: PER_SECOND, count: PER_SECOND * SLICE_SECONDS };
    const { delays, perSecond } = await sendAtRate(target, load);
    memory.push(residentOf(pid));
    p99.push(quantile(delays, 0.99));
    rates.push(perSecond);
  }
  const share = ((cpuOf(pid) - cpu) / (performance.now() - started)) * 100;
  const third = Math.floor(memory.length / 3);
  const [middle, last] = [mean(memory.slice(third, 2 * third)), mean(memory.slice(2 * third))];
  const what = `${PER_SECOND} reviews/s for ${minutes} min`;
  return {
    rows: [
      row(`${what}: memory, last third against the second`, `${last.toFixed(0)} MiB`, {
        ratio: (last / middle).toFixed(2),
        ...judge(last / middle, { atMost: GROWTH }),
      }),
      row(`${what}: answered`, `${median(rates).toFixed(0)} reviews/s`),
      row(`${what}: p99, CPU`, `${median(p99).toFixed(1)} ms, ${share.toFixed(0)} %`),
    ],
    figures: { minutes, memory, p99, rates, cpuPercent: share },
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
