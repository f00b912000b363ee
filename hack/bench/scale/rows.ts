import type { ScalePoint } from '../../pictures/scale.ts';
import { judge, type Row, row } from '../result.ts';
import type { Cost } from './measure.ts';

const GOALS = {
  loadPercent: 5,
  rssMiB: 200,
  probeMs: 20,
  readySeconds: 10,
  nodeMs: 1,
  idlePercent: 0.5,
  /** The largest cluster against the smallest; the issue says "the same", and the clock of /proc has ticks of 10 ms. */
  growth: 1.2,
};

/** The rows of one size. */
export function rowsOf(cost: Cost): Row[] {
  const { size, lists, readyMs, idle, load, probeP99Ms, rss, cpuOfKnownNode, cpuOfNewNode } = cost;
  const of = `${count(size.pods)} pods, ${count(size.nodes)} nodes`;
  const seconds = readyMs / 1000;
  const most = Math.max(...Object.values(lists));
  const ms = (value: number) => `${value.toFixed(2)} ms`;
  const percent = (value: number) => `${value.toFixed(2)} %`;
  return [
    row(`${of}: start to ready`, `${seconds.toFixed(1)} s`, judge(seconds, { under: GOALS.readySeconds }, ' s')),
    row(`${of}: lists of a kind until then`, String(most), judge(most, { atMost: 1 })),
    row(`${of}: most memory until then (VmHWM)`, `${cost.startPeak.toFixed(0)} MiB`),
    row(`${of}: CPU until all pods are decided`, `${(cost.startCpuMs / 1000).toFixed(1)} s`),
    row(`${of}: idle`, percent(idle), judge(idle, { under: GOALS.idlePercent }, ' %')),
    row(
      `${of}: idle, requests but watches and Lease`,
      String(cost.idleRequests),
      judge(cost.idleRequests, { atMost: 0 }),
    ),
    row(
      `${of}: ${size.heartbeats.toFixed(0)} heartbeats/s and ${size.updates.toFixed(0)} status updates/s`,
      percent(load),
      judge(load, { atMost: GOALS.loadPercent }, ' %'),
    ),
    row(`${of}: the same, answer to a probe, p99`, ms(probeP99Ms), judge(probeP99Ms, { under: GOALS.probeMs }, ' ms')),
    row(`${of}: CPU of a placed pod`, ms(cost.cpuOfPlacedPod)),
    row(`${of}: CPU of a joining node`, ms(cpuOfKnownNode), judge(cpuOfKnownNode, { under: GOALS.nodeMs }, ' ms')),
    row(`${of}: the same, new architecture`, ms(cpuOfNewNode), judge(cpuOfNewNode, { under: GOALS.nodeMs }, ' ms')),
    row(`${of}: memory under load (VmRSS)`, `${rss.toFixed(0)} MiB`, judge(rss, { atMost: GOALS.rssMiB }, ' MiB')),
    row(`${of}: most memory (VmHWM)`, `${cost.peak.toFixed(0)} MiB`),
  ];
}

/** The rows that compare sizes. `costs`: from the smallest cluster to the largest. */
export function growthRows(costs: readonly Cost[]): Row[] {
  const [small, large] = [costs[0], costs.at(-1)];
  if (small === undefined || large === undefined || small === large) return [];
  const ratio = large.cpuOfPlacedPod / small.cpuOfPlacedPod;
  const what = `CPU of a placed pod at ${count(large.size.pods)} and at ${count(small.size.pods)} pods`;
  const cells = costs.map(({ cpuOfPlacedPod }) => cpuOfPlacedPod.toFixed(2)).join(', ');
  return [row(what, `${cells} ms`, { ratio: ratio.toFixed(2), ...judge(ratio, { atMost: GOALS.growth }) })];
}

/** What the picture shows of a size. */
export function pointOf({ size, rss, peak, readyMs, cpuOfPlacedPod, idle, load }: Cost): ScalePoint {
  const round = (value: number) => Math.round(value * 100) / 100;
  return {
    pods: size.pods,
    nodes: size.nodes,
    events: size.heartbeats + size.updates,
    rss: round(rss),
    peak: round(peak),
    readySeconds: round(readyMs / 1000),
    cpuOfPlacedPod: round(cpuOfPlacedPod),
    idle: round(idle),
    load: round(load),
  };
}

/**
 * The formulas for memory and CPU as a block in Markdown. Memory: the straight line through the points. CPU: what an idle replica
 * takes, and what an event and a placed pod add. Events of a big cluster arrive several at a time, which makes each cheaper.
 */
export function sizingText(points: readonly ScalePoint[]): string {
  const memory = straightLine(points.map(({ pods, peak }) => [pods / 1000, peak]));
  const millicores = (percent: number) => percent * 10;
  const idle = mean(points.map((point) => millicores(point.idle)));
  const more = mean(points.map(({ load }) => millicores(load))) - idle;
  const event = more / mean(points.map(({ events }) => events));
  const alone = Math.max(...points.map(({ events, load }) => (millicores(load) - idle) / events));
  const pod = mean(points.map(({ cpuOfPlacedPod }) => cpuOfPlacedPod));
  return [
    '```text',
    `memory, MiB      = ${memory.base.toFixed(0)} + ${memory.slope.toFixed(2)} × pods / 1000`,
    `CPU, millicores  = ${idle.toFixed(1)} + ${event.toFixed(2)} × events/s + ${pod.toFixed(2)} × new pods/s`,
    `                   (up to ${alone.toFixed(2)} × events/s where they are so few that each arrives alone)`,
    'events/s         = nodes / 300 + status updates of pods/s',
    '```',
  ].join('\n');
}

type Line = { readonly base: number; readonly slope: number };

/** A straight line through points, by least squares. */
function straightLine(points: readonly (readonly [x: number, y: number])[]): Line {
  const [x, y] = [mean(points.map(([each]) => each)), mean(points.map(([, each]) => each))];
  const slope =
    points.reduce((sum, [px, py]) => sum + (px - x) * (py - y), 0) /
    (points.reduce((sum, [px]) => sum + (px - x) ** 2, 0) || 1);
  return { base: y - slope * x, slope };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
