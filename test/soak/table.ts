/** What the soak found, as a table. */
import { markdownTable } from '../../src/cli/output.ts';
import { MEASURES, type Measure, type Sample } from './sample.ts';
import { type Tolerance, type Trend, trendOf } from './trend.ts';

/** In less time no line through the samples means anything. */
export const TOO_SHORT_MINUTES = 10;

type Verdicts = {
  readonly name: string;
  /** The part of a core that the process used. */
  readonly cpu: number;
  readonly lines: readonly { readonly measure: Measure; readonly trend: Trend }[];
};

/** The first quarter, but at most ten minutes: code is compiled, pools fill, the image cache gets to know the images. */
const warmUpSeconds = (seconds: number) => Math.min(seconds / 4, 600);

const MEMORY = { of: 'floor', least: 4, part: 0.05 } as const;
const COUNT = { of: 'middle', least: 3, part: 0.1 } as const;
const TOLERANCES: Readonly<Record<Measure, Tolerance>> = {
  rss: MEMORY,
  heap: MEMORY,
  external: MEMORY,
  files: COUNT,
  sockets: COUNT,
  timers: COUNT,
  handles: COUNT,
};
const TITLES: Readonly<Record<Measure, string>> = {
  rss: 'memory of the process (RSS, MiB)',
  heap: 'heap after a collection (MiB)',
  external: 'memory outside of the heap (MiB)',
  files: 'open files, sockets included',
  sockets: 'sockets',
  timers: 'timers that keep the process alive',
  handles: 'other active handles and requests',
};

/** Judges the samples of a process after its warm-up. Throws for too few samples. */
export function verdicts(name: string, samples: readonly Sample[], seconds: number): Verdicts {
  const warm = samples.filter((sample) => sample.seconds >= warmUpSeconds(seconds));
  const [first, last] = [warm[0], warm.at(-1)];
  if (first === undefined || last === undefined || first === last) throw new Error('too few samples after the warm-up');
  const lines = MEASURES.map((measure) => {
    const points = warm.map((sample) => [sample.seconds, sample.values[measure]] as const);
    return { measure, trend: trendOf(points, TOLERANCES[measure]) };
  });
  return { name, cpu: (last.cpu - first.cpu) / (last.seconds - first.seconds), lines };
}

/** The verdicts in Markdown. */
export function soakTable(judged: readonly Verdicts[]): string {
  const number = (value: number) => (Math.abs(value) < 0.05 ? '0.0' : value.toFixed(1));
  const rows = judged.flatMap(({ name, lines }) =>
    lines.map(({ measure, trend: { start, end, perHour, grows } }) => [
      name,
      TITLES[measure],
      number(start),
      number(end),
      number(perHour),
      grows ? '**grows**' : 'flat',
    ]),
  );
  return markdownTable(['replica', 'what', 'start', 'end', 'slope per hour', 'verdict'], rows).trimEnd();
}
