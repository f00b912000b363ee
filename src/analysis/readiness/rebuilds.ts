import { rounded } from './price.ts';
import type { Measure, Rebuild, ReportedWorkload, Tally } from './report.ts';
import { addTo, shareOf, tallyOf } from './tally.ts';

/** A workload that only images hold back, with the images that still do. */
type HeldWorkload = { readonly workload: ReportedWorkload; readonly by: Set<string> };

/** What a rebuild of an image would free, by the measure and by the number of workloads; and its part in what it shares. */
type Score = { alone: number; aloneCount: number; shared: number; sharedCount: number };

/**
 * Ranks the images that hold workloads back, so that each rebuild frees the most after those before it. A workload that is also
 * pinned, or has an unknown image, is not ready after a rebuild, and does not count. Where no single rebuild frees anything, the
 * image comes next whose workloads need the fewest other rebuilds, by what they request. `savedBy`, if given: what a workload saves
 * once it moves; then that counts in place of what it requests.
 */
export function rankRebuilds(
  workloads: readonly ReportedWorkload[],
  target: string,
  all: Tally,
  ready: Tally,
  measure: Measure,
  savedBy?: (workload: ReportedWorkload) => number,
): Rebuild[] {
  const weigh = savedBy ?? ((workload: ReportedWorkload) => workload[measure]);
  const waiting = new Map<string, HeldWorkload[]>();
  const scores = new Map<string, Score>();
  for (const held of workloads.flatMap((workload) => heldBack(workload, target) ?? [])) {
    for (const image of held.by) addTo(waiting, image, held);
    count(scores, held, weigh, 1);
  }
  const ranked: Rebuild[] = [];
  let freed = ready[measure];
  for (let image = best(scores); image !== undefined; image = best(scores)) {
    const now: ReportedWorkload[] = [];
    for (const held of waiting.get(image) ?? []) {
      count(scores, held, weigh, -1);
      held.by.delete(image);
      count(scores, held, weigh, 1);
      if (held.by.size === 0) now.push(held.workload);
    }
    scores.delete(image);
    const frees = tallyOf(now);
    freed += frees[measure];
    const share = all[measure] === 0 ? 0 : frees[measure] / all[measure];
    const readyAfter = shareOf({ ...frees, [measure]: freed }, all, measure);
    const saves = savedBy && { saves: rounded(now.reduce((sum, each) => sum + savedBy(each), 0)) };
    ranked.push({ image, frees, share, readyAfter, ...saves });
  }
  return ranked;
}

/** Returns the images that alone, or together, are all that holds a workload back; undefined if there is more, or nothing. */
function heldBack(workload: ReportedWorkload, target: string): HeldWorkload | undefined {
  const verdict = workload.verdicts[target];
  if (verdict?.state !== 'blocked' && verdict?.state !== 'missing') return undefined;
  const by = new Set<string>();
  for (const reason of verdict.reasons) {
    if (reason.kind !== 'image') return undefined;
    by.add(reason.image);
  }
  return { workload, by };
}

function count(
  scores: Map<string, Score>,
  { workload, by }: HeldWorkload,
  weigh: (workload: ReportedWorkload) => number,
  sign: 1 | -1,
): void {
  const weight = sign * weigh(workload);
  for (const image of by) {
    const score = scores.get(image) ?? { alone: 0, aloneCount: 0, shared: 0, sharedCount: 0 };
    scores.set(image, score);
    score.shared += weight / by.size;
    score.sharedCount += sign / by.size;
    if (by.size > 1) continue;
    score.alone += weight;
    score.aloneCount += sign;
  }
}

function best(scores: ReadonlyMap<string, Score>): string | undefined {
  let found: string | undefined;
  let most: Score | undefined;
  for (const [image, score] of scores) {
    const order = most === undefined ? 1 : compare(score, most);
    if (order > 0 || (order === 0 && found !== undefined && image < found)) {
      found = image;
      most = score;
    }
  }
  return found;
}

function compare(one: Score, other: Score): number {
  return (
    difference(one.alone, other.alone) ||
    difference(one.aloneCount, other.aloneCount) ||
    difference(one.shared, other.shared) ||
    difference(one.sharedCount, other.sharedCount)
  );
}

/** Sums of parts are not exact. */
function difference(one: number, other: number): number {
  return Math.abs(one - other) < 1e-9 ? 0 : one - other;
}
