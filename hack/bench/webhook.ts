// Measures admission: the webhook beside a bare one that always gives the same answer, and releases beside a bare loop
// with the same patches. Usage: npm run bench -- webhook
// [--seconds N --rounds N --json FILE]
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ARCHITECTURE_GATE } from '../../src/names.ts';
import { startTestRegistry, type TestRegistry } from '../../test/simulator/registry/registry.ts';
import { startController } from '../../test/support/controller-process.ts';
import type { RunningController } from '../../test/support/running.ts';
import { multiPlatform } from '../../testimg/build.ts';
import { createAuthority } from '../cluster/certificates.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { freePorts } from '../cluster/ports.ts';
import { createAndWatch, prepareNamespace, quantile, removePods } from './load.ts';
import { judge, type Measured, type Row, row, runBenchmark, together } from './result.ts';
import { type Answered, sendAllYouCan, sendAtRate, type Target, warmUp } from './review-load.ts';
import { median, type Rounds, ratios, ratioText } from './rounds.ts';
import { startBare, startBareAdmission, turns, type Who } from './subjects.ts';

const REPOSITORY = 'bench';
const WARM = 20;
const PER_SECOND = 200;
/** Gated pods, at the same rate as for the other programs. */
const PODS_PER_SECOND = 20;
const DELAY_MS = 200;

/** The controller's webhook and its environment. */
type WebhookWorld = {
  readonly cluster: Cluster;
  readonly registry: TestRegistry;
  /** The directory of the certificate and its authority. */
  readonly directory: string;
  readonly ca: string;
};
/** How long to measure. */
type WebhookTimes = { readonly seconds: number; readonly rounds: number };
type Webhook = { readonly target: Target; readonly controller: RunningController };

const GOALS = { p99Ms: 3, coldP99Ms: 10, share: 0.7, releaseMs: 15 };

/** Runs the benchmark and prints its table. */
export async function benchWebhook(args: string[]): Promise<void> {
  await runBenchmark('webhook', args, { seconds: 10, rounds: 3 }, async (times) => {
    const cluster = await startCluster({ kwok: false });
    try {
      await prepareNamespace(cluster);
      return await measureWebhook(cluster, times);
    } finally {
      await cluster.stop();
    }
  });
}

/** Measures reviews, and releases of gated pods. */
export async function measureWebhook(cluster: Cluster, times: WebhookTimes): Promise<Measured> {
  const { seconds, rounds } = times;
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  const registry = await startTestRegistry();
  registry.inject({ kind: 'delay', ms: DELAY_MS });
  storeImages(registry, seconds * rounds);
  try {
    const world = { cluster, registry, directory, ca: await writeCertificate(directory) };
    const reviews = await measureReviews(world, seconds, rounds);
    return together({ reviews, releases: await measureReleases(world, seconds, rounds) });
  } finally {
    await registry.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** The images that are looked up before, and for each second as many that are used only once. */
function storeImages(registry: TestRegistry, seconds: number): void {
  const platforms = ['amd64', 'arm64'];
  for (let index = 0; index < WARM; index += 1) registry.put(REPOSITORY, `t${index}`, platforms, { note: `${index}` });
  const built = multiPlatform(platforms.map((architecture) => ({ os: 'linux', architecture })));
  for (let index = 0; index < seconds * PER_SECOND; index += 1) registry.load(REPOSITORY, `cold${index}`, built);
}

const warmImages = ({ host }: TestRegistry) =>
  Array.from({ length: WARM }, (_, index) => `${host}/${REPOSITORY}:t${index}`);

/** Writes a certificate for this machine in the form of `webhook.certificates`; returns the authority, PEM. */
async function writeCertificate(directory: string): Promise<string> {
  const authority = createAuthority('bench');
  const { certificate, key } = authority.issue('webhook', ['127.0.0.1']);
  const files = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return authority.certificate;
}

async function startWebhook({ cluster, registry, directory, ca }: WebhookWorld): Promise<Webhook> {
  const [port = 0] = await freePorts(1);
  const flags = {
    kubeconfig: cluster.kubeconfig,
    'registries.insecure': registry.host,
    'leaderElection.namespace': 'default',
    'placement.mode': 'both',
    'webhook.enabled': 'true',
    'webhook.address': `127.0.0.1:${port}`,
    'webhook.certificates': directory,
    'webhook.path': '/mutate',
    // Pods with unknown images stay gated; otherwise they would count as released.
    'images.unresolvable': 'wait',
  };
  const controller = await startController(Object.entries(flags).map(([name, value]) => `--${name}=${value}`));
  await cluster.waitFor('a leader', async () => (await controller.metric('archaware_leader')) === 1);
  return { target: { port, ca }, controller };
}

/** Reviews at a steady rate and as many as possible, with known and unknown images, beside the bare answerer. */
async function measureReviews(world: WebhookWorld, seconds: number, rounds: number): Promise<Measured> {
  const { registry, directory, ca } = world;
  const known = warmImages(registry);
  const steady = { perSecond: PER_SECOND, count: PER_SECOND * seconds };
  const [warm, cold, most]: Record<Who, Answered[]>[] = [0, 1, 2].map(() => ({ ours: [], bare: [] }));
  if (warm === undefined || cold === undefined || most === undefined) throw new Error('three measurements');
  const [port = 0] = await freePorts(1);
  const bare = await startBareAdmission(port, directory);
  for (let round = 0; round < rounds; round += 1) {
    process.stderr.write(`reviews ${round + 1}\n`);
    const { target, controller } = await startWebhook(world);
    const unknown = Array.from(
      { length: steady.count },
      (_, index) => `${registry.host}/${REPOSITORY}:cold${round * steady.count + index}`,
    );
    await warmUp(target, known);
    for (const who of turns(round)) {
      const asked = who === 'ours' ? target : { port, ca };
      warm[who].push(await sendAtRate(asked, { images: known, ...steady }));
      most[who].push(await sendAllYouCan(asked, { images: known, seconds }));
      cold[who].push(await sendAtRate(asked, { images: unknown, ...steady }));
    }
    await controller.stop();
  }
  await bare.stop();
  checkGated(warm.ours, cold.ours, steady.count);
  const rates: Rounds = { ours: ratesOf(most.ours), bare: ratesOf(most.bare) };
  const shares = ratios(rates);
  return {
    rows: [
      row('most reviews/s, warm', median(rates.ours).toFixed(0), {
        bare: median(rates.bare).toFixed(0),
        ratio: ratioText(median(shares), shares),
        ...judge(median(shares), { atLeast: GOALS.share }),
      }),
      delayRow(`${PER_SECOND} reviews/s, warm, p50`, warm, 0.5),
      delayRow(`${PER_SECOND} reviews/s, warm, p99`, warm, 0.99, GOALS.p99Ms),
      delayRow(`${PER_SECOND} reviews/s, cold, p50`, cold, 0.5),
      delayRow(`${PER_SECOND} reviews/s, cold, p99`, cold, 0.99, GOALS.coldP99Ms),
    ],
    figures: { rates, warm: quantilesOf(warm), cold: quantilesOf(cold) },
  };
}

const ratesOf = (answered: readonly Answered[]) => answered.map(({ perSecond }) => perSecond);

/** Throws if the measurement was not of what its title says. */
function checkGated(warm: readonly Answered[], cold: readonly Answered[], count: number): void {
  const wrong = [...warm.map(({ gated }) => gated), ...cold.map(({ gated }) => count - gated)].filter(
    (each) => each > 0,
  );
  if (wrong.length > 0) throw new Error(`warm reviews were gated or cold ones were not: ${wrong.join(', ')}`);
}

function delayRow(what: string, answered: Record<Who, readonly Answered[]>, part: number, goalMs?: number): Row {
  const all = (who: Who) => answered[who].flatMap(({ delays }) => delays);
  const of = (who: Who) => answered[who].map(({ delays }) => quantile(delays, part));
  const [ours, bare] = [quantile(all('ours'), part), quantile(all('bare'), part)];
  return row(what, `${ours.toFixed(1)} ms`, {
    bare: `${bare.toFixed(1)} ms`,
    ratio: ratioText(ours / bare, ratios({ ours: of('ours'), bare: of('bare') })),
    ...(goalMs === undefined ? {} : judge(ours, { atMost: goalMs }, ' ms')),
  });
}

/** For each round. */
function quantilesOf(answered: Record<Who, readonly Answered[]>) {
  const of = (all: readonly Answered[]) =>
    all.map(({ delays }) => ({ p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) }));
  return { ours: of(answered.ours), bare: of(answered.bare) };
}

/**
 * Pods with the controller's gate whose images are known, through the real API server: from their creation until they
 * are seen without the gate.
 */
async function measureReleases(world: WebhookWorld, seconds: number, rounds: number): Promise<Measured> {
  const { cluster, registry } = world;
  const delays: Record<Who, number[][]> = { ours: [], bare: [] };
  const load = { images: warmImages(registry), gate: ARCHITECTURE_GATE };
  for (let round = 0; round < rounds; round += 1) {
    for (const who of turns(round)) {
      process.stderr.write(`releases ${round + 1}, ${who}\n`);
      const subject = who === 'ours' ? (await startWebhook(world)).controller : await startBare(cluster, 'release');
      await createAndWatch(cluster, { ...load, count: WARM, prefix: `w${round}${who}` });
      const count = PODS_PER_SECOND * seconds;
      const measured = await createAndWatch(cluster, {
        ...load,
        count,
        perSecond: PODS_PER_SECOND,
        prefix: `g${round}${who}`,
      });
      delays[who].push([...measured.delays]);
      await subject.stop();
      await removePods(cluster);
    }
  }
  const of = (all: readonly number[][]) => all.map((each) => median(each));
  const [ours, bare] = [median(delays.ours.flat()), median(delays.bare.flat())];
  return {
    rows: [
      row(`gated to released at ${PODS_PER_SECOND} pods/s, warm, p50`, `${ours.toFixed(1)} ms`, {
        bare: `${bare.toFixed(1)} ms`,
        ratio: ratioText(ours / bare, ratios({ ours: of(delays.ours), bare: of(delays.bare) })),
        ...judge(ours, { atMost: GOALS.releaseMs }, ' ms'),
      }),
    ],
    figures: { ours: of(delays.ours), bare: of(delays.bare) },
  };
}
