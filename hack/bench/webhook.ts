// Measures admission: the webhook beside a bare one that always gives the same answer, and releases beside a bare loop
// with the same patches. Usage: npm run bench -- webhook [--seconds N --rounds N]
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURE_GATE } from '../../src/names.ts';
import { startController } from '../../test/support/controller-process.ts';
import type { RunningController } from '../../test/support/running.ts';
import { type ImageFixture, multiPlatform } from '../../testimg/build.ts';
import { createAuthority } from '../cluster/certificates.ts';
import { type Cluster, startCluster } from '../cluster/cluster.ts';
import { freePorts } from '../cluster/ports.ts';
import { type LimitedRegistry, startLimitedRegistry } from './limited-registry.ts';
import { createAndWatch, prepareNamespace, quantile, removePods } from './load.ts';
import { type Answered, sendAllYouCan, sendAtRate, type Target, warmUp } from './review-load.ts';
import { startBare, startBareAdmission } from './subjects.ts';
import { printTable } from './table.ts';

const REPOSITORY = 'bench';
const WARM = 20;
const PER_SECOND = 200;
/** Gated pods, at the same rate as for the other programs. */
const PODS_PER_SECOND = 20;
const DELAY_MS = 200;

type Row = readonly [what: string, ours: string, bare: string, ratio: string, goal: string, peers: string];
type World = {
  readonly cluster: Cluster;
  readonly registry: LimitedRegistry;
  /** The directory of the certificate and its authority. */
  readonly directory: string;
  readonly ca: string;
  readonly seconds: number;
  readonly rounds: number;
};
type Webhook = { readonly target: Target; readonly controller: RunningController };

/** Runs the benchmark and prints its table. */
export async function benchWebhook(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { seconds: { type: 'string', default: '10' }, rounds: { type: 'string', default: '3' } },
  });
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  const cluster = await startCluster({ kwok: false });
  const directory = await mkdtemp(join(tmpdir(), 'archaware-bench-'));
  const registry = await startLimitedRegistry({
    images: images(seconds * rounds),
    repository: REPOSITORY,
    delayMs: DELAY_MS,
    perWindow: Number.POSITIVE_INFINITY,
    windowMs: 60_000,
  });
  try {
    await prepareNamespace(cluster);
    const world = { cluster, registry, directory, ca: await writeCertificate(directory), seconds, rounds };
    const rows = [...(await measureReviews(world)), await measureReleases(world)];
    process.stdout.write(
      `reviews of 4 KB over 16 connections, ${seconds} s in each of ${rounds} rounds; real control plane; ${DELAY_MS} ms before ` +
        'each answer of the registry\npeers: from the notes on them (peers.md), not measured in this run\n\n',
    );
    printTable([['what', 'archaware', 'bare', 'ratio', 'goal', 'peers'], ...rows]);
  } finally {
    await registry.stop();
    await cluster.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** The images that are looked up before, and for each round as many that are used only once. */
function images(seconds: number): Map<string, ImageFixture> {
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  const built = multiPlatform(platforms);
  const warm = Array.from({ length: WARM }, (_, index): [string, ImageFixture] => [
    `t${index}`,
    multiPlatform(platforms, { note: `${index}` }),
  ]);
  return new Map([
    ...warm,
    ...Array.from({ length: seconds * PER_SECOND }, (_, index): [string, ImageFixture] => [`cold${index}`, built]),
  ]);
}

const warmImages = ({ host }: LimitedRegistry) =>
  Array.from({ length: WARM }, (_, index) => `${host}/${REPOSITORY}:t${index}`);

/** Writes a certificate for this machine in the form of `webhook.certificates`; returns the authority, PEM. */
export async function writeCertificate(directory: string): Promise<string> {
  const authority = createAuthority('bench');
  const { certificate, key } = authority.issue('webhook', ['127.0.0.1']);
  const files = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return authority.certificate;
}

async function startWebhook({ cluster, registry, directory, ca }: World): Promise<Webhook> {
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

async function measureReviews(world: World): Promise<Row[]> {
  const { registry, directory, ca, seconds, rounds } = world;
  const known = warmImages(registry);
  const steady = { perSecond: PER_SECOND, count: PER_SECOND * seconds };
  const [warm, cold, most]: Record<'ours' | 'bare', Answered[]>[] = [0, 1, 2].map(() => ({ ours: [], bare: [] }));
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
    for (const who of round % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)) {
      const asked = who === 'ours' ? target : { port, ca };
      warm[who].push(await sendAtRate(asked, { images: known, ...steady }));
      most[who].push(await sendAllYouCan(asked, { images: known, seconds }));
      cold[who].push(await sendAtRate(asked, { images: unknown, ...steady }));
    }
    await controller.stop();
  }
  await bare.stop();
  checkGated(warm.ours, cold.ours, steady.count);
  const rates = (answered: readonly Answered[]) =>
    quantile(
      answered.map(({ perSecond }) => perSecond),
      0.5,
    );
  const [ours, other] = [rates(most.ours), rates(most.bare)];
  return [
    delayRow(`warm, ${PER_SECOND} reviews/s, p50`, warm, 0.5, '', 'Noe: 44 s (alone: 15 ms)'),
    delayRow(`warm, ${PER_SECOND} reviews/s, p99`, warm, 0.99, 'at most 5 ms', ''),
    ['most reviews/s, warm', ours.toFixed(0), other.toFixed(0), (ours / other).toFixed(2), 'at least 3000', 'Noe: 20'],
    delayRow(`cold, ${PER_SECOND} reviews/s, p50`, cold, 0.5, '', ''),
    delayRow(`cold, ${PER_SECOND} reviews/s, p99`, cold, 0.99, 'at most 10 ms', ''),
  ];
}

/** Throws if the measurement was not of what its title says. */
function checkGated(warm: readonly Answered[], cold: readonly Answered[], count: number): void {
  const wrong = [...warm.map(({ gated }) => gated), ...cold.map(({ gated }) => count - gated)].filter(
    (each) => each > 0,
  );
  if (wrong.length > 0) throw new Error(`warm reviews were gated or cold ones were not: ${wrong.join(', ')}`);
}

function delayRow(
  what: string,
  { ours, bare }: Record<'ours' | 'bare', readonly Answered[]>,
  part: number,
  goal: string,
  peers: string,
): Row {
  const [one, other] = [ours, bare].map((all) =>
    quantile(
      all.flatMap(({ delays }) => delays),
      part,
    ),
  );
  return [what, ...compared(one ?? Number.NaN, other ?? Number.NaN), goal, peers];
}

function compared(ours: number, bare: number): [ours: string, bare: string, ratio: string] {
  return [`${ours.toFixed(1)} ms`, `${bare.toFixed(1)} ms`, (ours / bare).toFixed(2)];
}

/**
 * Pods with the controller's gate whose images are known, through the real API server: from their creation until they
 * are seen without the gate.
 */
async function measureReleases(world: World): Promise<Row> {
  const { cluster, registry, seconds, rounds } = world;
  const delays: Record<'ours' | 'bare', number[]> = { ours: [], bare: [] };
  const load = { images: warmImages(registry), gate: ARCHITECTURE_GATE };
  for (let round = 0; round < rounds; round += 1) {
    for (const who of round % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)) {
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
      delays[who].push(...measured.delays);
      await subject.stop();
      await removePods(cluster);
    }
  }
  const [ours, bare] = [quantile(delays.ours, 0.5), quantile(delays.bare, 0.5)];
  return [
    `gated to released, warm, ${PODS_PER_SECOND} pods/s, p50`,
    ...compared(ours, bare),
    'at most 15 ms',
    'multiarch-tuning-operator: 60 ms',
  ];
}
