/** Whether something grows, as pure functions of its samples. */
import { median } from '../../hack/bench/rounds.ts';

/** A measured value at a time in seconds. */
type Point = readonly [seconds: number, value: number];

export type Trend = {
  /** On the fitted line. */
  readonly start: number;
  readonly end: number;
  readonly perHour: number;
  readonly grows: boolean;
};

/** How a value is judged. */
export type Tolerance = {
  /** `floor`: the least of each window, because memory falls only when garbage is collected. */
  readonly of: 'floor' | 'middle';
  /** A rise over the whole time counts from this on, and from `part` of the start on. */
  readonly least: number;
  readonly part: number;
};

const WINDOWS = 12;

/**
 * Fits a line through the windows of the samples (Theil and Sen: the median of all slopes between two windows, which single
 * peaks do not move). It grows if the line rises by more than the tolerance, and more than the windows scatter about it.
 * Throws for fewer samples than two windows need.
 */
export function trendOf(points: readonly Point[], { of, least, part }: Tolerance): Trend {
  const reduced = windows(points, of);
  const [first, last] = [reduced[0], reduced.at(-1)];
  if (first === undefined || last === undefined || first === last) throw new Error('too few samples for a line');
  const slopes = reduced.flatMap(([from, low], index) =>
    reduced.slice(index + 1).map(([to, high]) => (high - low) / (to - from)),
  );
  const slope = median(slopes);
  const offset = median(reduced.map(([seconds, value]) => value - slope * seconds));
  const scatter = median(reduced.map(([seconds, value]) => Math.abs(value - offset - slope * seconds)));
  const [start, end] = [offset + slope * first[0], offset + slope * last[0]];
  const rise = end - start;
  return { start, end, perHour: slope * 3600, grows: rise > Math.max(least, part * start, 2 * scatter) };
}

function windows(points: readonly Point[], of: Tolerance['of']): Point[] {
  const size = Math.max(1, Math.ceil(points.length / WINDOWS));
  const found: Point[] = [];
  for (let from = 0; from < points.length; from += size) {
    const part = points.slice(from, from + size);
    const values = part.map(([, value]) => value);
    found.push([median(part.map(([seconds]) => seconds)), of === 'floor' ? Math.min(...values) : median(values)]);
  }
  return found;
}
