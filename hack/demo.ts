// Shows on a simulated cluster what happens without the controller, with it, and after clean. Needs Node.js, nothing else.
// Usage: npm run demo
import { type EmbeddedCluster, startEmbeddedCluster } from '../test/simulator/embedded-cluster.ts';
import { startTestRegistry, type TestRegistry } from '../test/simulator/registry/registry.ts';
import { runBundle, startController } from '../test/support/controller-process.ts';
import { manifestWithoutDeployment } from '../test/support/manifest.ts';
import { differences, isCalm, listOf, taintsSeen, traces, type WorkloadSeen, workloadsSeen } from './demo/observe.ts';
import { type Cell, command, heading, type Piece, paint, say, table, wrapped } from './demo/terminal.ts';
import {
  commonArchitectures,
  fill,
  MISTYPED,
  NAMESPACE,
  NODES,
  objectsOf,
  platformsOf,
  REGISTRY_OPTIONS,
  WORKLOADS,
  type Workload,
} from './demo/workloads.ts';

/** Everything below is there in a second; a machine under load gets more. */
const DEADLINE_MS = 20_000;

/** Something is not as the demo says; the message is all that there is to say. */
class Unexpected extends Error {}

async function main(): Promise<void> {
  const started = performance.now();
  const cluster = await startEmbeddedCluster({ imagePlatforms: platformsOf });
  const registry = await startTestRegistry(REGISTRY_OPTIONS);
  try {
    fill(registry);
    say();
    say('archaware: pods go where their images run', 'bold');
    wrapped('A demo on a simulated cluster. The controller, its manifest and its rights are the real ones.', 0, 'dim');
    await showCluster(cluster);
    await showWithout(cluster, registry);
    const flags = await install(cluster, registry);
    const all = [...WORKLOADS, MISTYPED];
    await showWith(cluster, registry, flags, all);
    await showClean(cluster, flags);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    say();
    wrapped(
      `Everything was as it should be. ${seconds} s, ${cluster.requests().length} requests to the API server.`,
      0,
      'green',
    );
    say();
  } finally {
    await cluster.stop();
    await registry.stop();
  }
}

async function showCluster(cluster: EmbeddedCluster): Promise<void> {
  heading(1, 'A cluster that mixes architectures');
  for (const node of NODES) await cluster.createNode(node);
  await deploy(cluster, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }]);
  table(
    ['NODE', 'ARCHITECTURE'],
    NODES.map(({ name, architecture }) => [name, architecture]),
  );
}

async function showWithout(cluster: EmbeddedCluster, registry: TestRegistry): Promise<void> {
  heading(2, 'Without archaware: the scheduler does not ask what an image runs on');
  await deploy(cluster, objectsOf(WORKLOADS, registry.host));
  const seen = await watch(cluster, WORKLOADS, (entries) => entries.every(isCalm));
  table(
    ['WORKLOAD', 'ITS IMAGES RUN ON', 'PODS ON', 'STATE'],
    seen.map((entry) => [nameOf(entry), architecturesOf(entry.workload), nodesOf(entry), stateOf(entry)]),
  );
  const pods = seen.flatMap((entry) => entry.pods);
  const crashing = pods.filter(({ crashes }) => crashes).length;
  if (crashing === 0 || crashing === pods.length) throw new Unexpected(`${crashing} of ${pods.length} pods crash`);
  say();
  say(`${crashing} of ${pods.length} pods can never work where they are: exec format error.`, 'red');
  for (const { kind, name } of WORKLOADS) {
    await cluster.request('DELETE', `/apis/apps/v1/namespaces/${NAMESPACE}/${kind.toLowerCase()}s/${name}`);
  }
  const gone = async () => (await listOf(cluster, `/api/v1/namespaces/${NAMESPACE}/pods`)).length === 0;
  await cluster.waitFor('the pods to go', gone, DEADLINE_MS);
}

/** Applies the manifest and gives the flags that run a command with the rights of its service account. */
async function install(cluster: EmbeddedCluster, registry: TestRegistry): Promise<string[]> {
  // Its Deployment would pull the image that this process stands in for.
  await cluster.apply(await manifestWithoutDeployment());
  const kubeconfig = await cluster.serviceAccountKubeconfig('archaware', 'archaware-controller');
  return ['--kubeconfig', kubeconfig, '--registries.insecure', registry.host];
}

async function showWith(
  cluster: EmbeddedCluster,
  registry: TestRegistry,
  flags: readonly string[],
  workloads: readonly Workload[],
): Promise<void> {
  heading(3, 'With archaware: nodes say what they are, pods say what they can');
  command('kubectl apply -f manifests/archaware-controller.yaml');
  command('node dist/main.js run');
  say();
  const controller = await startController(flags);
  try {
    const taints = await cluster.waitFor(
      'every node to be tainted',
      async () => {
        const now = await taintsSeen(cluster);
        return [...now.values()].every((taint) => taint !== '') && now;
      },
      DEADLINE_MS,
    );
    table(
      ['NODE', 'ARCHITECTURE', 'TAINT'],
      NODES.map(({ name, architecture }) => [name, architecture, [{ text: taints.get(name) ?? '', style: 'yellow' }]]),
    );
    for (const { name, architecture } of NODES) {
      const wanted = `supported-arch=${architecture}:NoSchedule`;
      if (taints.get(name) !== wanted) throw new Unexpected(`node ${name}: expected the taint ${wanted}`);
    }
    say();
    say('The same workloads again, and one with a mistyped image name:');
    say();
    await deploy(cluster, objectsOf(workloads, registry.host));
    const seen = await watch(cluster, workloads, (entries) => differences(entries).length === 0);
    table(
      ['WORKLOAD', 'TOLERATES', 'PODS ON', 'STATE'],
      seen.map((entry) => [nameOf(entry), entry.pods[0]?.tolerates.join(' ') || '-', nodesOf(entry), stateOf(entry)]),
    );
    const faults = differences(seen);
    if (faults.length > 0) throw new Unexpected(`${faults.join('; ')}\n${controller.logs().slice(-5).join('\n')}`);
    showReasons(seen, registry.host);
  } finally {
    // As SIGTERM does it: it ends its writes and gives the lease up, so that clean need not wait.
    await controller.stop();
  }
}

function showReasons(seen: readonly WorkloadSeen[], host: string): void {
  say();
  say('What cannot run, and why, from the Events of its pods:');
  for (const { workload, notes } of seen) {
    if (workload.expected.kind === 'placed') continue;
    say();
    say(`${workload.kind} ${workload.name}`, 'bold');
    for (const note of notes) wrapped(note.replaceAll(`${host}/`, '').replaceAll(host, 'the registry'), 2, 'red');
  }
  say();
  wrapped(
    'The first is held, because no node could run it. The second is looked up again and again; after two minutes (images.fallbackAfter) it may go anywhere, so that a registry outage does not block deployments.',
    0,
  );
}

async function showClean(cluster: EmbeddedCluster, flags: readonly string[]): Promise<void> {
  heading(4, 'Everything is removed again');
  command('node dist/main.js clean --yes');
  const { code, stdout, stderr } = await runBundle(['clean', '--yes', ...flags]);
  for (const line of stderr.trimEnd().split('\n')) wrapped(line, 0, 'dim');
  say();
  say(stdout.trimEnd());
  if (code !== 0) throw new Unexpected(`clean ended with ${code}`);
  const left = await traces(cluster);
  if (left.length > 0) throw new Unexpected(`clean left: ${left.join(', ')}`);
  say();
  wrapped(
    'Checked again: no taint, annotation or policy of archaware is left, and no toleration in a DaemonSet. Pods keep their tolerations, which have no effect any more. With --pods restart, clean would restart their Deployments and StatefulSets, but leave those alone whose images do not run on every node.',
    0,
  );
}

async function deploy(cluster: EmbeddedCluster, objects: readonly object[]): Promise<void> {
  for (const item of objects) await cluster.apply(JSON.stringify(item));
}

/** Looks until it is as it should be, or the time is over, and gives what it saw last. */
async function watch(
  cluster: EmbeddedCluster,
  workloads: readonly Workload[],
  done: (seen: readonly WorkloadSeen[]) => boolean,
): Promise<WorkloadSeen[]> {
  let seen: WorkloadSeen[] = [];
  const look = async () => {
    seen = await workloadsSeen(cluster, workloads);
    return done(seen);
  };
  await cluster.waitFor('the pods', look, DEADLINE_MS).catch(() => undefined);
  return seen;
}

/** As kubectl takes it. A table with longer names would not fit a terminal of 80 columns. */
const nameOf = ({ workload: { kind, name } }: WorkloadSeen) => `${kind === 'DaemonSet' ? 'ds' : 'deploy'}/${name}`;

function architecturesOf({ images }: Workload): Cell {
  const common = commonArchitectures(images);
  if (images.some((repository) => platformsOf(`/${repository}`) === undefined)) return '?';
  if (common.length === 0) return 'nothing in common';
  return common.join(' ');
}

function nodesOf({ pods }: WorkloadSeen): Cell {
  const names = [...new Set(pods.map(({ node }) => node).filter((node) => node !== ''))].sort();
  if (names.length === 0) return '-';
  return names.flatMap((name, index): Piece[] => {
    const crashes = pods.some((pod) => pod.node === name && pod.crashes);
    const piece: Piece = { text: `${crashes ? '✗' : '✓'}${name}`, style: crashes ? 'red' : 'green' };
    return index === 0 ? [piece] : [{ text: ' ' }, piece];
  });
}

function stateOf({ workload, pods }: WorkloadSeen): Cell {
  const crashing = pods.filter(({ crashes }) => crashes).length;
  const waiting = pods.filter(({ node }) => node === '').length;
  if (crashing > 0) return [{ text: `${crashing} fail`, style: 'red' }];
  if (waiting > 0) {
    const held = workload.expected.kind === 'unplaced' && workload.expected.reason === 'NoCommonArchitecture';
    return [{ text: held ? 'held' : 'waits', style: 'yellow' }];
  }
  return [{ text: `${pods.length} ${pods.length === 1 ? 'runs' : 'run'}`, style: 'green' }];
}

try {
  await main();
} catch (error) {
  const message = error instanceof Unexpected ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`\n  ${paint('Not as expected:', 'red')} ${message}\n\n`);
  process.exitCode = 1;
}
