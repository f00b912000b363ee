import type { Rebuild, Report, Summary, Tally, TargetSummary } from '../../analysis/readiness/report.ts';
import { notLookedUpText } from '../../analysis/readiness/report-images.ts';
import { shareOf, tallyOf } from '../../analysis/readiness/tally.ts';
import type { Reason } from '../../placement/readiness/readiness-states.ts';
import { few } from '../../placement/reasons.ts';

/** A share as a percentage, rounded down: 99.9 % is not everything. */
export function percent(share: number): string {
  return `${Math.floor(share * 100 + 1e-9)} %`;
}

/** Cores as people write them: `38.5`, `0.25`. */
export function coresText(cores: number): string {
  const digits = cores >= 100 ? 0 : cores >= 1 ? 1 : 3;
  return String(Number(cores.toFixed(digits)));
}

const UNITS: readonly string[] = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** Bytes as people write them: `512Mi`, `1.5Gi`. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${Number(value.toFixed(value >= 100 ? 0 : 1))}${UNITS[unit]}`;
}

/** Returns a newer tag of an image that has a build for a target, if one was found. */
export function newerTagOf({ images }: Report, image: string, target: string): string | undefined {
  return images.find((each) => each.image === image)?.blocking[target]?.newer;
}

/** `24 of 38.5 cores`, or `3 of 4 replicas` where no workload requests CPU. */
function ofAll(part: Tally, { all, measure }: Summary): string {
  return measure === 'cpu'
    ? `${coresText(part.cpu)} of ${coresText(all.cpu)} cores`
    : `${part.replicas} of ${all.replicas} replicas`;
}

/** Money as people write it, in the unit of the prices: `1,234.50`. */
export function moneyText(amount: number): string {
  return amount.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

function costLines({ cost }: TargetSummary): string[] {
  if (cost === undefined) return [];
  const { now, moved, saves, unpriced } = cost;
  if (now === 0 && moved === 0 && unpriced === 0) return ['No workload requests what has a price.'];
  const change = saves < 0 ? `${moneyText(-saves)} more` : `${moneyText(saves)} less`;
  const [they, are] = unpriced === 1 ? ['1 workload', 'is'] : [`${unpriced} workloads`, 'are'];
  return [
    `What the workloads request costs ${moneyText(now)} for a month, and ${moneyText(moved)} once all that is ready has moved: ${change}.`,
    ...(unpriced === 0 ? [] : [`${they} ${are} not in these sums: a node of theirs has no price.`]),
  ];
}

/** How many rebuilds the first lines sum up. */
const FIRST = 5;

/** Returns the lines that say how far a target is: what can move today, and what the first rebuilds add. */
export function headlines(report: Report, target: string): string[] {
  const { summary } = report;
  const found = summary.targets[target];
  if (found === undefined) return [];
  const { states, readyShare, nodes, rebuilds } = found;
  const workloads = `${states.ready.workloads} of ${summary.all.workloads} workloads`;
  const there = nodes === 0 ? [`The cluster has no ${target} node: copies of its other nodes stand in for one.`] : [];
  const noCpu = summary.measure === 'replicas' ? ['No workload requests CPU, so shares count replicas.'] : [];
  return [
    `${target}: ${percent(readyShare)} of the ${summary.measure === 'cpu' ? 'requested CPU' : 'replicas'} can run there today (${ofAll(states.ready, summary)}, ${workloads}).`,
    ...notes(report, target),
    ...costLines(found),
    ...rebuildLines(rebuilds),
    ...there,
    ...noCpu,
  ];
}

/** Returns what the share of a target does not say: what it leaves out, and what is not known. */
function notes({ summary, workloads }: Report, target: string): string[] {
  const found = summary.targets[target];
  const lines: string[] = [];
  if (found?.withoutCpu !== undefined) {
    const { all, ready } = found.withoutCpu;
    const [those, request, are] =
      all.workloads === 1 ? ['1 workload', 'requests', 'is'] : [`${all.workloads} workloads`, 'request', 'are'];
    lines.push(
      `${those} ${request} no CPU and ${are} not in this share: ${ready.replicas} of ${all.replicas} replicas can run there.`,
    );
  }
  const failed = notLookedUpText(summary.notLookedUp);
  if (failed !== undefined && found !== undefined) {
    // Nothing but failed lookups keeps these from being ready.
    const open = workloads.filter(
      ({ verdicts: { [target]: verdict } }) =>
        verdict?.state === 'unknown' && verdict.reasons.every(({ kind }) => kind === 'lookup'),
    );
    const most = shareOf(
      tallyOf([...open, ...workloads.filter(({ verdicts }) => verdicts[target]?.state === 'ready')]),
      summary.all,
      summary.measure,
    );
    const upTo = open.length === 0 ? '' : `; with their workloads it may be up to ${percent(most)}`;
    lines.push(`${failed}${upTo}.`);
  }
  return lines;
}

function rebuildLines(rebuilds: readonly Rebuild[]): string[] {
  const first = rebuilds.slice(0, FIRST);
  const share = first.reduce((sum, each) => sum + each.share, 0);
  if (first.length === 0 || percent(share) === percent(0)) return [];
  const firstOnes = rebuilds.length > FIRST ? `The first ${FIRST} images` : `${first.length} images`;
  const [these, hold] = first.length === 1 ? ['One image', 'holds'] : [firstOnes, 'hold'];
  return [`${these} ${hold} back ${percent(share)} more; see below.`];
}

/** A reason that fits a column: an image without its registry, and without what the state says already. */
export function briefReason(reason: Reason): string {
  switch (reason.kind) {
    case 'image':
      return `${withoutPath(reason.image)}: ${few(reason.platforms) || 'no platform'} only`;
    case 'lookup':
      return `${withoutPath(reason.image)}: ${reason.code}`;
    default:
      return reason.text.replace(/^its /, '');
  }
}

function withoutPath(image: string): string {
  return image.split('@', 1)[0]?.split('/').at(-1) || image;
}
