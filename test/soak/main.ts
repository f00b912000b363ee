/**
 * Lets two replicas of the built controller, with everything switched on, run for a long time on a simulated cluster in which
 * something changes all the time, and fails where something that they hold grows. Usage: npm run soak -- --minutes 60
 */
import { setMaxListeners } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePorts } from '../../hack/cluster/ports.ts';
import { waitFor } from '../../hack/cluster/wait.ts';
import { writeBetween } from '../../hack/write-between.ts';
import { createDice, DEFAULT_SEED } from '../faults/support/dice.ts';
import { KIND_LABEL, wrongTaints, wrongTolerations } from '../faults/support/rules.ts';
import { type EmbeddedCluster, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';
import { at, objects } from '../simulator/json.ts';
import { startTestRegistry } from '../simulator/registry/registry.ts';
import { startController } from '../support/controller-process.ts';
import { manifestWithoutDeployment, webhookManifest } from '../support/manifest.ts';
import { churn, LOAD } from './churn.ts';
import { createSampler, type Sample } from './sample.ts';
import { soakTable, TOO_SHORT_MINUTES, verdicts } from './table.ts';

const DOCUMENT = new URL('../../docs/development/reliability.md', import.meta.url);
const PROBE = new URL('./probe.mjs', import.meta.url);
const SAMPLE_EVERY_MS = 10_000;
const DEADLINE_MS = 120_000;

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
const minutes = Number(values.minutes ?? 60);
const seed = Number(values.seed ?? DEFAULT_SEED);
if (!(minutes > 0)) {
  process.stderr.write(`--minutes: got "${values.minutes}", expected a number above 0\n`);
  process.exit(3);
}

/** The samples of a replica, and what it is called. */
type Watched = { readonly name: string; readonly samples: Sample[]; readonly sample: () => Promise<Sample> };

async function main(): Promise<boolean> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-soak-'));
  const cluster = await startEmbeddedCluster({ manifest: await manifestWithoutDeployment() });
  const registry = await startTestRegistry();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
    const ports = await freePorts(2);
    await cluster.apply(await webhookManifest(`https://127.0.0.1:${ports[0]}`));
    for (const architecture of ['amd64', 'arm64']) await cluster.createNode({ name: architecture, architecture });
    const began = performance.now();
    const elapsed = () => (performance.now() - began) / 1000;
    const watched: Watched[] = [];
    for (const [index, port] of ports.entries()) {
      const file = join(directory, `probe-${index}`);
      const flags = [
        ...['--kubeconfig', kubeconfig, '--registries.insecure', registry.host, '--placement.mode', 'both'],
        ...['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`, '--images.fallbackAfter', '24h'],
        ...['--pods.onWrongNode', 'evict'],
      ];
      const environment = { NODE_OPTIONS: `--import ${PROBE.href}`, SOAK_PROBE: file };
      const controller = await startController(flags, { environment });
      stops.push(() => controller.stop());
      const sample = createSampler(controller.pid, file, elapsed);
      watched.push({ name: index === 0 ? 'leader' : 'standby', samples: [], sample });
    }
    const end = new AbortController();
    // Each pod of the churn waits for it.
    setMaxListeners(0, end.signal);
    const changing = churn(cluster, registry, createDice(seed, 'soak'), end.signal);
    changing.catch(() => end.abort());
    await sampleUntil(watched, minutes * 60, elapsed, end.signal);
    end.abort();
    const counts = await changing;
    await waitFor(
      'the state that the rules say',
      async () => {
        const wrong = await wrongOf(cluster);
        if (wrong.length > 0) throw new Error(wrong.slice(0, 3).join('; '));
        return true;
      },
      DEADLINE_MS,
    );
    return await report(watched, counts);
  } finally {
    await Promise.all(stops.map((stop) => stop()));
    await Promise.all([cluster.stop(), registry.stop()]);
    await rm(directory, { recursive: true });
  }
}

async function sampleUntil(watched: readonly Watched[], seconds: number, elapsed: () => number, signal: AbortSignal) {
  for (let number = 1; elapsed() < seconds && !signal.aborted; number++) {
    for (const { samples, sample } of watched) samples.push(await sample());
    await delay(Math.max(0, number * SAMPLE_EVERY_MS - elapsed() * 1000), undefined, { signal }).catch(() => undefined);
    if (number % 30 === 0) process.stderr.write(`${Math.round(elapsed() / 60)} of ${minutes} minutes\n`);
  }
}

/** What of the load is not as the rules say, in sentences. */
async function wrongOf(cluster: EmbeddedCluster): Promise<string[]> {
  const list = async (path: string) => objects(at((await cluster.request('GET', path)).body, 'items'));
  const [pods, nodes] = await Promise.all([list('/api/v1/pods'), list('/api/v1/nodes')]);
  const ours = pods.filter((pod) => at(pod, 'metadata', 'labels', KIND_LABEL) !== undefined);
  const staying = ours.filter((pod) => at(pod, 'metadata', 'deletionTimestamp') === undefined);
  return [
    ...staying.map((pod) => wrongTolerations(pod, pod.spec, at(pod, 'metadata', 'labels'))),
    ...nodes.map(wrongTaints),
  ].filter((problem) => problem !== undefined);
}

/** Prints the table; returns whether everything is flat. */
async function report(watched: readonly Watched[], counts: Awaited<ReturnType<typeof churn>>): Promise<boolean> {
  const judged = watched.map(({ name, samples }) => verdicts(name, samples, minutes * 60));
  const used = judged.map(({ name, cpu }) => `${name} ${(cpu * 100).toFixed(1)} %`).join(', ');
  const text = [
    `${minutes} minutes, seed ${seed}, Node.js ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim()}), simulated`,
    `control plane: ${counts.pods} pods (${LOAD.podsPerSecond} a second), ${counts.nodes} nodes, ${counts.namespaces} namespaces`,
    `came and went; all watches ended every ${LOAD.watchesEndEverySeconds} s. Processor time: ${used} of a core.`,
    '',
    soakTable(judged),
  ].join('\n');
  process.stdout.write(`\n${text}\n\n`);
  if (process.env.WRITE_TABLE) await writeBetween(DOCUMENT, 'soak', text);
  if (minutes < TOO_SHORT_MINUTES) {
    process.stdout.write(
      `Under ${TOO_SHORT_MINUTES} minutes a program still warms up: this was a try, and the lines of its table say nothing.\n`,
    );
    return true;
  }
  return judged.every(({ lines }) => lines.every(({ trend }) => !trend.grows));
}

const isFlat = await main();
process.stdout.write(isFlat ? 'soak: 1 passed, 0 failed, 0 skipped\n' : 'soak: 0 passed, 1 failed, 0 skipped\n');
process.exit(isFlat ? 0 : 1);
