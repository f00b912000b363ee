import { expect } from 'chai';
import { olderKubernetes } from '../../hack/cluster/spawn.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { ours, scheduledOn, tolerations } from '../support/objects.ts';
import { leads, type RunningController } from '../support/running.ts';
import { daemonSet, deployment, job, pod, statefulSet, type WorkloadOptions } from '../support/workloads.ts';
import { nodesNamed, worldForAll } from './support/world.ts';

const NODES = ['amd64-1', 'amd64-2', 'arm64-1', 's390x-1'];

/** The tags of the images whose platforms are known after one lookup. */
const RESOLVABLE = new Set(FIXTURES.flatMap(({ tag, expected }) => ('error' in expected ? [] : tag)));

/** A node's name begins with its architecture. */
const architectureOf = (node: string | undefined) => node?.split('-')[0] ?? 'none';

describe('placement on the real control plane', () => {
  const world = worldForAll({ nodes: nodesNamed(...NODES) });
  let controller: RunningController;

  before(async () => {
    controller = await world.run();
  });

  /** Where the pods of a workload run, once this many do; each architecture once. */
  async function eventuallyRunsOn(namespace: string, app: string, count: number): Promise<string[]> {
    const pods = await world.eventuallyAllRun(namespace, app, count);
    return [...new Set(pods.map((one) => architectureOf(scheduledOn(one))))].sort();
  }

  it('taints every node with its architecture', () => world.eventuallyTainted());

  const rows: readonly { name: string; tags: Pick<TagOptions, 'images' | 'init' | 'sidecars'>; set: string[] }[] = [
    { name: 'four images', tags: { images: ['wide', 'nested', 'wide', 'multi'] }, set: ['amd64', 'arm64'] },
    { name: 'both', tags: { images: ['nested'], sidecars: ['multi'], init: ['arm64'] }, set: ['arm64'] },
  ];
  type TagOptions = { images: string[]; init?: string[]; sidecars?: string[] };
  const kinds = [
    { kind: 'Deployment', build: deployment, count: () => 4 },
    { kind: 'StatefulSet', build: statefulSet, count: () => 4 },
    { kind: 'Job', build: job, count: () => 4 },
    {
      kind: 'DaemonSet',
      build: daemonSet,
      count: (set: readonly string[]) => NODES.filter((node) => set.includes(architectureOf(node))).length,
    },
  ] as const;
  for (const { kind, build, count } of kinds) {
    it(`runs the pods of a ${kind} where all of their images run, and nowhere else`, async () => {
      const namespace = await world.namespace(kind.toLowerCase());
      const toImages = (tags: readonly string[] = []) => tags.map((tag) => world.image(tag));
      const app = (index: number) => `row-${index}`;
      for (const [index, { tags }] of rows.entries()) {
        const options: WorkloadOptions = {
          images: toImages(tags.images),
          initImages: toImages(tags.init),
          sidecarImages: toImages(tags.sidecars),
          replicas: 4,
        };
        await world.create(build(namespace, app(index), options));
      }
      for (const [index, { name, set }] of rows.entries()) {
        const found = await eventuallyRunsOn(namespace, app(index), count(set));
        expect(set, name).to.include.members(found);
        if (kind === 'DaemonSet') expect(found, name).to.deep.equal(set);
        for (const one of await world.pods(namespace, app(index))) {
          expect(tolerations(one), name).to.deep.equal(ours(...set));
        }
      }
    });
  }

  it('writes nothing and asks nobody when every object of a settled cluster is seen again', async () => {
    await world.eventually(
      'the queues to be empty',
      async () => (await controller.metric('archaware_workqueue_depth')) === 0,
    );
    const reconciled = (name: string) => controller.metric('archaware_reconcile_total', { controller: name });
    const restarts = await controller.metric('archaware_watch_restarts_total');
    await world.cluster.stopApiServer();
    await world.cluster.startApiServer();
    await world.eventually('the watches to be back', async () => {
      return (await controller.metric('archaware_watch_restarts_total')) >= restarts + 4;
    });
    await world.eventually('the lease to be renewed', () => leads(controller));
    await world.registry.forgetRequests();
    const from = await world.requestCount();
    const [pods, daemonSets, nodes] = [
      await reconciled('pod'),
      await reconciled('daemonset'),
      await reconciled('node'),
    ];
    const namespace = await world.namespace('seen-again');
    await touchEverything();
    // Events of pods and nodes that show nothing new cost a comparison and are not counted. They come in order: when one
    // that counts has been looked at, and is left alone, all of them have been seen.
    await world.cluster.kubectl(['label', 'node', NODES[0] ?? '', 'example.com/seen=again']);
    const last = pod(namespace, 'last', { images: [world.image('multi')] });
    await world.create({ ...last, metadata: { ...last.metadata, labels: { 'archaware.dev/ignore': 'true' } } });
    await world.eventually('everything to be looked at again', async () => {
      const seen = [await reconciled('pod'), await reconciled('daemonset'), await reconciled('node')];
      const depth = await controller.metric('archaware_workqueue_depth');
      const [podsSeen = 0, daemonSetsSeen = 0, nodesSeen = 0] = seen;
      return depth === 0 && podsSeen > pods && daemonSetsSeen > daemonSets && nodesSeen > nodes;
    });
    expect(await world.writesSince(from)).to.deep.equal([]);
    // Images that could not be resolved are asked for again at times of their own, which may be now.
    const asked = (await world.registry.requests()).filter(({ path }) => RESOLVABLE.has(path.split('/').at(-1) ?? ''));
    expect(asked).to.deep.equal([]);
  });

  it("lets bare pods be applied again, puts archaware's tolerations back into them, and nobody else's", async function () {
    // Older servers do not know the kind of the policy.
    if (olderKubernetes()) return this.skip();
    const namespace = await world.namespace('again');
    const images = [world.image('multi')];
    const own = { key: 'example.com/own', operator: 'Exists' };
    const apply = (name: string, options: Partial<WorkloadOptions>) => {
      const input = JSON.stringify(pod(namespace, name, { images, ...options }));
      return world.cluster.kubectl(['apply', '-f', '-'], { input });
    };
    const patch = (name: string, given: unknown) => {
      const merge = ['--type=merge', '--patch', JSON.stringify({ spec: { tolerations: given } })];
      return world.cluster.kubectl(['-n', namespace, 'patch', 'pod', name, ...merge]);
    };
    const present = async (name: string) => tolerations(await world.get('Pod', namespace, name));
    await apply('own', { tolerations: [own] });
    await apply('plain', {});
    await world.eventually('both to be placed', async () =>
      [await present('own'), await present('plain')].every((all) => all.includes('supported-arch=arm64:NoSchedule')),
    );
    const before = [await present('own'), await present('plain')];
    const labels = { 'example.com/new': 'yes' };
    for (const [what, update] of [
      ['own', () => apply('own', { tolerations: [own] })],
      ['own, with a change', () => apply('own', { tolerations: [own], labels })],
      ['plain, with a change', () => apply('plain', { labels })],
      ['own, without ours', () => patch('own', [own])],
      ['plain, without any', () => patch('plain', null)],
    ] as const) {
      const { code, stderr } = await update();
      expect(code, `${what}: ${stderr}`).to.equal(0);
      expect([await present('own'), await present('plain')], what).to.deep.equal(before);
    }
    await apply('own', { tolerations: [own, { ...own, key: 'example.com/two' }] });
    expect(await present('own')).to.deep.equal([...(before[0] ?? []), 'example.com/two:'].sort());
    const { stderr } = await patch('own', null);
    expect(stderr).to.include('existing toleration can not be modified');
  });

  async function touchEverything(): Promise<void> {
    for (const resource of ['pods', 'daemonsets']) {
      await world.cluster.kubectl(['annotate', resource, '--all', '-A', 'example.com/touched=1']);
    }
    await world.cluster.kubectl(['annotate', 'nodes', '--all', 'example.com/touched=1']);
  }
});
