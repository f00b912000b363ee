import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { type ApiProxy, startApiProxy } from '../e2e/support/api-proxy.ts';
import { changeLabels, type Labels } from '../e2e/support/label-writer.ts';
import { type LiveWorld, startWorld } from '../e2e/support/world.ts';
import { startController } from '../support/controller-process.ts';
import { type Contents, mount } from '../support/mounted.ts';
import { annotation, nameOf } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';

const MANAGED = 'archaware.dev/managed';
const LEASE = 'archaware-controller';
const COUNT = 200;
const NODES = Array.from({ length: COUNT }, (_, index) => `node-${index}`);
/** These have a label under the name of a rule, set by hand. */
const BY_HAND: ReadonlyMap<string, string> = new Map(
  NODES.slice(0, 10).map((name, index) => [name, `by-hand-${index}`]),
);
const GPU = 'example.com/gpu';
const TPU = 'example.com/tpu';
const ANY = 'accelerators/any';

/** What is mounted, and which labels a node is to have by it. */
type Version = { readonly files: Contents; readonly wanted: (labels: Labels) => Labels };

const has = (value: string | undefined) => value !== undefined && value !== 'false';
const when = (label: string, condition: boolean): Labels => (condition ? { [label]: 'true' } : {});

const VERSIONS: readonly Version[] = [
  {
    files: { [GPU]: 'churn/a\r\nchurn/b=1\r\n' },
    wanted: (labels) => when(GPU, has(labels['churn/a']) || labels['churn/b'] === '1'),
  },
  {
    // Renamed; and one that cannot be read.
    files: { [TPU]: 'churn/a', 'example.com/never': 'no label', 'kubernetes.io/x': 'churn/a' },
    wanted: (labels) => when(TPU, has(labels['churn/a'])),
  },
  {
    files: { [GPU]: '!churn/a', [TPU]: 'churn/b!=2 # or none', [ANY]: `${GPU}=true\n` },
    wanted: (labels) => ({
      ...when(GPU, !has(labels['churn/a'])),
      ...when(TPU, labels['churn/b'] !== '2'),
      ...when(ANY, !has(labels['churn/a']) && labels[GPU] === undefined),
    }),
  },
  { files: {}, wanted: () => ({}) },
];

describe('label rules on the real control plane', function () {
  this.timeout(600_000);
  let world: LiveWorld;
  let directory: string;
  let replicas: { controller: RunningController; proxy: ApiProxy }[] = [];

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    const nodes = NODES.map((name, index) => {
      const byHand = BY_HAND.get(name);
      const labels = byHand === undefined ? {} : { [GPU]: byHand };
      return { name, architecture: index % 2 === 0 ? 'amd64' : 'arm64', labels, waitUntilReady: false };
    });
    world = await startWorld({ nodes, guard: { labels: ['accelerators', 'example.com'] } });
  });
  afterEach(async () => {
    for (const { controller, proxy } of replicas) {
      await controller.stop('SIGKILL');
      await proxy.close();
    }
    replicas = [];
    await world.cluster.request('DELETE', `/apis/coordination.k8s.io/v1/namespaces/archaware/leases/${LEASE}`);
  });
  after(async () => {
    await world?.stop();
    await rm(directory, { recursive: true });
  });

  const flags = () => ['--nodeLabels.directory', directory, '--leaderElection.leaseDuration', '3s'];
  async function start() {
    const proxy = await startApiProxy(world.cluster);
    const kubeconfig = await proxy.kubeconfig(world.kubeconfig);
    const controller = await startController(['--kubeconfig', kubeconfig, '--loops', 'nodes,labels', ...flags()]);
    const replica = { proxy, controller };
    replicas.push(replica);
    return replica;
  }
  const leads = async ({ controller }: { controller: RunningController }) =>
    (await controller.metric('archaware_leader')) === 1;
  const decided = (labels: Labels): Labels =>
    Object.fromEntries(
      [GPU, TPU, ANY].flatMap((label) => (labels[label] === undefined ? [] : [[label, labels[label]]])),
    );

  /** What is not as the version says, of nodes whose other labels are these. */
  async function astray(version: Version | undefined, others: ReadonlyMap<string, Labels>): Promise<string[]> {
    return (await world.list('Node', '')).flatMap((node) => {
      const name = nameOf(node);
      const byHand = BY_HAND.get(name);
      const own: Labels = { ...others.get(name), ...(byHand === undefined ? {} : { [GPU]: byHand }) };
      const wanted = version?.wanted(own) ?? {};
      const found = labelsOf(node);
      const foreign = Object.fromEntries(Object.entries(found).filter(([key]) => key.startsWith('churn/')));
      const record = annotation(node, MANAGED);
      const recorded: unknown = record === undefined ? [] : (at(JSON.parse(String(record)), 'labels') ?? []);
      const ours = Object.keys(wanted).filter((label) => label !== GPU || byHand === undefined);
      const problems = [
        differ('labels', { ...wanted, ...decided(own) }, decided(found)),
        differ("others' labels", others.get(name) ?? {}, foreign),
        differ('record', ours.sort(), recorded),
      ].flat();
      return problems.map((problem) => `${name}: ${problem}`);
    });
  }

  it('converge at 200 nodes that change while a mounted directory is swapped a hundred times, by one writer', async () => {
    await mount(directory, VERSIONS[0]?.files ?? {});
    const first = await start();
    await world.eventually('the first replica to lead', () => leads(first));
    const second = await start();
    const writer = changeLabels(world, NODES);
    let swaps = 0;
    for (let round = 0; round < 10; round++) {
      for (let swap = 0; swap < 10; swap++) {
        swaps++;
        await mount(directory, VERSIONS[(swaps + round) % VERSIONS.length]?.files ?? {});
        await writer.more(10);
      }
      const version = VERSIONS[(swaps + round) % VERSIONS.length];
      const others = await writer.pause();
      await world.eventually(`every node to be as version ${swaps} says`, async () => {
        const wrong = await astray(version, others);
        if (wrong.length === 0) return true;
        throw new Error(`${wrong.length}: ${wrong.slice(0, 3).join('; ')}`);
      });
      writer.resume();
      if (round === 4) {
        expect(second.proxy.writes()).to.deep.equal([]);
        first.controller.kill('SIGKILL');
        await world.eventually('the second replica to lead', () => leads(second));
      }
    }
    const { writes } = await writer.stop();
    expect(writes).to.be.greaterThan(COUNT);
    const sent = [...first.proxy.writes(), ...second.proxy.writes()].filter(({ path }) => path.includes('/nodes/'));
    expect(sent.length).to.be.greaterThan(COUNT);
    // Every conflict is reported, at the node that has it.
    const told = await world.list('Event', 'default');
    const about = told.filter((event) => at(event, 'reason') === 'LabelConflict');
    expect(new Set(about.map((event) => at(event, 'regarding', 'name')))).to.deep.equal(new Set(BY_HAND.keys()));
    const refused = await world.eventuallyEvent(
      'archaware',
      'ConfigurationRejected',
      /some label rules are refused, all others apply/,
    );
    expect(refused).to.match(/never:1: got "no label".*|kubernetes.io: is reserved/);
  });
});

function labelsOf(node: unknown): Labels {
  const labels = at(node, 'metadata', 'labels');
  return Object.fromEntries(Object.entries(Object(labels)).map(([key, value]) => [key, String(value)]));
}

function differ(what: string, expected: unknown, found: unknown): string[] {
  const sorted = (value: unknown) =>
    JSON.stringify(
      Array.isArray(value) ? value : Object.entries(Object(value)).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  return sorted(expected) === sorted(found) ? [] : [`${what} ${sorted(found)}, expected ${sorted(expected)}`];
}
