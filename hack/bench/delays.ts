import type { World } from './images.ts';
import { createAndWatch, quantile, removePods } from './load.ts';
import { judge, type Measured, row } from './result.ts';
import { median, ratios, ratioText } from './rounds.ts';
import { startOurs, startSubject, turns, type Who } from './subjects.ts';

const GOALS = [
  [0.5, 1.2],
  [0.99, 1.3],
] as const;
const PER_SECOND = 20;
const STARTS = 5;
const READY_MS = 500;

/** Creates pods at a steady rate, and measures how long each waits for its toleration. The images are known before. */
export async function measureDelays(
  { cluster, registry, images }: World,
  seconds: number,
  rounds: number,
): Promise<Measured> {
  const count = PER_SECOND * seconds;
  const delays: Record<Who, number[][]> = { ours: [], bare: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const who of turns(round)) {
      process.stderr.write(`delays ${round + 1}, ${who}\n`);
      const subject = await startSubject(who, cluster, registry.host);
      await createAndWatch(cluster, { count: images.length, images, prefix: `v${round}${who}` });
      const measured = await createAndWatch(cluster, {
        count,
        images,
        perSecond: PER_SECOND,
        prefix: `d${round}${who}`,
      });
      delays[who].push([...measured.delays]);
      await subject.stop();
      await removePods(cluster);
    }
  }
  const rows = GOALS.map(([part, goal]) => {
    const of = (all: readonly number[][]) => all.map((each) => quantile(each, part));
    const each = ratios({ ours: of(delays.ours), bare: of(delays.bare) });
    const [ours, bare] = [quantile(delays.ours.flat(), part), quantile(delays.bare.flat(), part)];
    return row(`delay at ${PER_SECOND} pods/s, warm, p${part * 100}`, `${ours.toFixed(1)} ms`, {
      bare: `${bare.toFixed(1)} ms`,
      ratio: ratioText(ours / bare, each),
      ...judge(ours / bare, { atMost: goal }),
    });
  });
  return { rows, figures: delays };
}

/** Starts the controller on an empty cluster, several times. */
export async function measureStart({ cluster, registry }: World): Promise<Measured> {
  const times: number[] = [];
  for (let round = 0; round < STARTS; round += 1) {
    const subject = await startOurs(cluster, registry.host);
    times.push(subject.readyMs);
    await subject.stop();
  }
  const middle = median(times);
  const rounds = `(${times.map((time) => time.toFixed(0)).join(', ')})`;
  return {
    rows: [
      row('start to ready, empty cluster', `${middle.toFixed(0)} ms`, {
        ratio: rounds,
        ...judge(middle, { atMost: READY_MS }, ' ms'),
      }),
    ],
    figures: times,
  };
}
