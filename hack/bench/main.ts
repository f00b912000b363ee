// Measures the controller against a bare loop on the real control plane: both in one run, alternating, as ratios.
// Usage: npm run bench [-- --pods N --rounds N --rate N --seconds N], npm run bench -- registry (registry.ts),
// npm run bench -- webhook (webhook.ts), npm run bench -- tenants (tenants.ts), or npm run bench -- report (report.ts)
import { parseArgs } from 'node:util';
import { image, multiPlatform } from '../../testimg/build.ts';
import type { Fixture } from '../../testimg/fixtures.ts';
import { pushFixtures } from '../../testimg/push.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { type Registry, startRegistry } from '../cluster/registry.ts';
import { createAndWatch, prepareNamespace, quantile, removePods } from './load.ts';
import { benchRegistry } from './registry.ts';
import { benchReport } from './report.ts';
import { benchClean } from './scale/clean.ts';
import { benchScale } from './scale/scale.ts';
import { type Subject, startBare, startOurs } from './subjects.ts';
import { printTable } from './table.ts';
import { benchTenants } from './tenants.ts';
import { benchWebhook } from './webhook.ts';

const REPOSITORY = 'bench';
const IMAGES = 20;
/** The number of single-platform images among them: each costs two requests instead of one. */
const SINGLES = 5;

type Row = readonly [what: string, ours: string, bare: string, ratio: string, goal: string];

const [what, ...others] = process.argv.slice(2);
/** Other benchmarks. */
const OTHERS = new Map([
  ['registry', benchRegistry],
  ['webhook', benchWebhook],
  ['tenants', benchTenants],
  ['report', benchReport],
  ['scale', benchScale],
  ['clean', benchClean],
]);
const other = OTHERS.get(what ?? '');
const { values } = parseArgs({
  args: other === undefined ? process.argv.slice(2) : [],
  options: {
    pods: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '15' },
  },
});

async function main(): Promise<void> {
  const cluster = await startCluster();
  const registry = await startRegistry();
  try {
    await prepareNamespace(cluster);
    await pushFixtures({ registry: registry.host, repository: REPOSITORY, insecure: true, fixtures: fixtures() });
    await registry.forgetRequests();
    const ready = await startToReady(cluster, registry);
    const burst = await measureBurst(cluster, registry);
    const delays = await measureDelays(cluster, registry);
    printTable([['what', 'archaware', 'bare loop', 'ratio', 'goal'], ready, ...burst, ...delays]);
  } finally {
    await cluster.stop();
    await registry.stop();
    await registry.remove();
  }
}

function fixtures(): Fixture[] {
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  const amd64 = { os: 'linux', architecture: 'amd64' };
  return Array.from({ length: IMAGES }, (_, index) => ({
    tag: `t${index}`,
    description: 'for the benchmark',
    build: () =>
      index < SINGLES ? image(amd64, { note: `${index}` }) : multiPlatform(platforms, { note: `${index}` }),
    expected: { platforms: [] },
  }));
}

const images = ({ host }: Registry) => Array.from({ length: IMAGES }, (_, index) => `${host}/${REPOSITORY}:t${index}`);

async function startToReady(cluster: Cluster, registry: Registry): Promise<Row> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const subject = await startOurs(cluster, registry.host);
    times.push(subject.readyMs);
    await subject.stop();
  }
  return ['start to ready, empty cluster', `${quantile(times, 0.5).toFixed(0)} ms`, '', '', 'at most 500 ms'];
}

async function measureBurst(cluster: Cluster, registry: Registry): Promise<Row[]> {
  const count = Number(values.pods);
  const rates: Record<'ours' | 'bare', number[]> = { ours: [], bare: [] };
  const peaks: Record<'ours' | 'bare', number[]> = { ours: [], bare: [] };
  const requests: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const who of round % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)) {
      const subject = await startSubject(who, cluster, registry);
      await registry.forgetRequests();
      const stopSampling = samplePeak(subject, peaks[who]);
      const { totalMs } = await createAndWatch(cluster, { count, images: images(registry), prefix: `b${round}${who}` });
      rates[who].push((count / totalMs) * 1000);
      stopSampling();
      if (who === 'ours') requests.push((await registry.requests()).length);
      await subject.stop();
      await removePods(cluster);
      process.stderr.write(`burst ${round + 1}, ${who}: ${rates[who].at(-1)?.toFixed(0)} pods/s\n`);
    }
  }
  const ratios = rates.ours.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN));
  const median = (list: readonly number[]) => quantile(list, 0.5);
  const allowed = IMAGES + SINGLES;
  return [
    [
      `${count} pods, ${IMAGES} images at once`,
      `${median(rates.ours).toFixed(0)} pods/s`,
      `${median(rates.bare).toFixed(0)} pods/s`,
      `${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')})`,
      'at least 0.95',
    ],
    ['registry requests for them', `${median(requests)}`, '', '', `at most ${allowed}`],
    [
      'most memory meanwhile (RSS)',
      `${median(peaks.ours).toFixed(0)} MB`,
      `${median(peaks.bare).toFixed(0)} MB`,
      '',
      'at most 120 MB',
    ],
  ];
}

/** Samples the memory while something runs; at the end, the maximum is added to the list. */
function samplePeak(subject: Subject, peaks: number[]): () => void {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, subject.megabytes());
  }, 100);
  return () => {
    clearInterval(timer);
    peaks.push(most);
  };
}

async function measureDelays(cluster: Cluster, registry: Registry): Promise<Row[]> {
  const perSecond = Number(values.rate);
  const count = perSecond * Number(values.seconds);
  const delays: Record<'ours' | 'bare', number[]> = { ours: [], bare: [] };
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const who of round % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)) {
      const subject = await startSubject(who, cluster, registry);
      // Warm-up: each image is seen once before the measurement.
      await createAndWatch(cluster, { count: IMAGES, images: images(registry), prefix: `w${round}${who}` });
      const measured = await createAndWatch(cluster, {
        count,
        images: images(registry),
        perSecond,
        prefix: `d${round}${who}`,
      });
      delays[who].push(...measured.delays);
      await subject.stop();
      await removePods(cluster);
    }
  }
  return (
    [
      [0.5, 1.5],
      [0.99, 2],
    ] as const
  ).map(([part, goal]) => {
    const [ours, bare] = [quantile(delays.ours, part), quantile(delays.bare, part)];
    return [
      `delay at ${perSecond} pods/s, warm, p${part * 100}`,
      `${ours.toFixed(1)} ms`,
      `${bare.toFixed(1)} ms`,
      (ours / bare).toFixed(2),
      `at most ${goal}`,
    ];
  });
}

function startSubject(who: 'ours' | 'bare', cluster: Cluster, registry: Registry): Promise<Subject> {
  return who === 'ours' ? startOurs(cluster, registry.host) : startBare(cluster);
}

await (other === undefined ? main() : other(others));
