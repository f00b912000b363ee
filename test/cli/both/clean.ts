import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { annotation, isReady, nameOf, ours, taints, tolerations, uidOf } from '../../support/objects.ts';
import { daemonSet, deployment, job, pod, statefulSet } from '../../support/workloads.ts';
import type { World } from '../../support/world.ts';
import { carriedIn, outcome } from './carried.ts';
import type { Start } from './context.ts';

const RIGHTS = 'rbac.authorization.k8s.io';
const restarts = { name: 'clean-restarts' };
/** What `--pods restart` needs, and no way of installing gives. */
const RESTARTS = [
  {
    apiVersion: `${RIGHTS}/v1`,
    kind: 'ClusterRole',
    metadata: restarts,
    rules: [
      { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['get'] },
      { apiGroups: ['apps'], resources: ['deployments', 'statefulsets'], verbs: ['get', 'patch'] },
    ],
  },
  {
    apiVersion: `${RIGHTS}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: restarts,
    roleRef: { apiGroup: RIGHTS, kind: 'ClusterRole', ...restarts },
    subjects: [{ kind: 'ServiceAccount', namespace: 'archaware', name: 'archaware-controller' }],
  },
];

export function describeClean(start: Start): void {
  describe('clean', () => {
    const ns = 'cleaned';
    let world: World;
    beforeEach(async () => {
      world = await start({ guard: { taints: ['supported-arch:NoSchedule', 'old.example.com/arch:NoSchedule'] } });
      await world.namespace(ns);
      for (const object of RESTARTS) await world.cluster.apply(JSON.stringify(object));
    });
    afterEach(() => world?.stop());

    const { settle, running, carrying, nodeTaints, holder } = carriedIn(
      () => world,
      () => ns,
    );
    const clean = async (...flags: readonly string[]) =>
      outcome(await world.command(['clean', '--yes', '--output', 'json', '--pods', 'restart', ...flags]));
    const counts = (nodes: number, daemonSets: number, pods: number, configurations = 4) => ({
      configurations,
      gates: 0,
      nodes,
      labels: 0,
      daemonSets,
      pods,
      annotations: 0,
      reports: 0,
    });

    it('removes everything in an order that loses nothing, and the second run removes nothing', async () => {
      await world.create(
        daemonSet(ns, 'agent', { images: [world.image('multi')] }),
        deployment(ns, 'web', { images: [world.image('multi')], replicas: 3 }),
        statefulSet(ns, 'store', { images: [world.image('arm64')], replicas: 2 }),
      );
      await settle();
      await running(7);
      expect(await nodeTaints()).to.have.members(ours('amd64', 'arm64'));

      const seen = (await world.written()).length;
      const { code, removed, left, kept } = await clean();
      expect(left).to.deep.equal([]);
      expect(code).to.equal(0);
      expect(removed).to.deep.equal(counts(2, 1, 5));
      const reason = 'a new pod could start on a node of amd64, for which its images have no build';
      expect(kept).to.have.deep.members(['store-0', 'store-1'].map((name) => ({ what: `Pod ${ns} ${name}`, reason })));

      const step = (line: string) =>
        ['/nodes/', '/archaware-keep', '/daemonsets/', '/deployments/'].findIndex((part) => line.includes(part));
      const steps = (await world.written()).slice(seen).map(step);
      expect(steps).to.deep.equal([...steps].sort());
      expect(steps.filter((entry) => entry === 3).length).to.equal(1);
      expect(new Set(steps)).to.deep.equal(new Set([0, 1, 2, 3]));

      expect(await nodeTaints()).to.deep.equal([]);
      for (const node of await world.list('Node', ''))
        expect(annotation(node, 'archaware.dev/managed')).to.equal(undefined);
      const set = await world.get('DaemonSet', ns, 'agent');
      expect(tolerations(at(set, 'spec', 'template'))).to.deep.equal([]);
      expect(annotation(set, 'archaware.dev/tolerations')).to.equal(undefined);
      await running(7);
      expect(await carrying()).to.deep.equal(['store-0', 'store-1']);
      expect(await holder()).to.equal('');

      const before = (await world.written()).length;
      expect(await clean()).to.deep.include({ code: 0, left: [] });
      expect((await world.written()).slice(before)).to.deep.equal([]);
    });

    it('names bare pods and pods of Jobs and keeps them, which is no failure; any further run says the same', async () => {
      // Nowhere to go: kwok would complete it at once, and then it would not matter any more.
      const stuck = { spec: { nodeSelector: { nowhere: 'yes' } } };
      await world.create(
        deployment(ns, 'web', { images: [world.image('multi')] }),
        pod(ns, 'bare', { images: [world.image('multi')] }),
        job(ns, 'task', { images: [world.image('multi')], ...stuck, spec: { ...stuck.spec, restartPolicy: 'Never' } }),
      );
      await settle();
      const [task] = (await world.list('Pod', ns)).map(nameOf).filter((name) => name.startsWith('task-'));
      const kept = [
        { what: `Pod ${ns} bare`, reason: 'bare pod: it has no owner that could be restarted' },
        { what: `Pod ${ns} ${task}`, reason: 'owned by a Job, which clean does not restart' },
      ];
      const first = await clean();
      expect(first.printed).to.have.all.keys('removed', 'left', 'kept');
      expect(first).to.deep.include({ code: 0, removed: counts(2, 0, 1), left: [], kept });
      expect(await clean()).to.deep.include({ code: 0, removed: counts(0, 0, 0, 0), left: [], kept });
      expect(await carrying()).to.deep.equal(['bare', task]);
    });

    it('neither restarts nor waits for an owner that was not whole before', async () => {
      await world.create(
        deployment(ns, 'web', { images: [world.image('multi')], replicas: 2 }),
        statefulSet(ns, 'store', { images: [world.image('multi')], replicas: 2 }),
      );
      await settle();
      await running(4);
      await world.patch('Deployment', ns, 'web', {
        spec: { replicas: 3, template: { spec: { nodeSelector: { nowhere: 'yes' } } } },
      });
      await world.eventually('a pod that no node takes', async () =>
        (await world.pods(ns, 'web')).some((entry) => !at(entry, 'spec', 'nodeName')),
      );
      const generation = async () => at(await world.get('Deployment', ns, 'web'), 'metadata', 'generation');
      const before = await generation();
      const { code, left, kept } = await clean();
      expect([code, left]).to.deep.equal([0, []]);
      expect(new Set(kept.map(({ what }) => what.replace(/(web)-.*/, '$1')))).to.deep.equal(new Set([`Pod ${ns} web`]));
      for (const { reason } of kept)
        expect(reason).to.match(/^its Deployment was not whole \(.*\), so it was not restarted$/);
      expect(await generation()).to.equal(before);
      expect((await carrying()).every((name) => name.startsWith('web-'))).to.equal(true);
    });

    it('leaves pods alone where it is not told to restart their owners, and is complete nevertheless', async () => {
      await world.create(deployment(ns, 'web', { images: [world.image('multi')], replicas: 2 }));
      await settle();
      await running(2);
      const before = (await world.list('Pod', ns)).map(uidOf).sort();
      for (const flags of [[], ['--pods', 'keep']]) {
        const { code, stdout, stderr } = await world.command(['clean', '--yes', ...flags]);
        expect(code, stderr).to.equal(0);
        expect(stdout).to.match(/pods with tolerations or affinity, kept +0 +2/);
        expect((await world.list('Pod', ns)).map(uidOf).sort()).to.deep.equal(before);
      }
      expect(await nodeTaints()).to.deep.equal([]);
    });

    it('does not replace pods whose author gave them the very same tolerations', async () => {
      const own = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });
      await world.create(
        deployment(ns, 'whole', { images: [world.image('multi')], tolerations: [own('amd64'), own('arm64')] }),
        deployment(ns, 'half', { images: [world.image('multi')], tolerations: [own('amd64')] }),
        daemonSet(ns, 'agent', { images: [world.image('multi')], tolerations: [own('arm64')] }),
      );
      await settle();
      await running(4);
      const [whole] = (await world.pods(ns, 'whole')).map(uidOf);
      const result = await clean();
      expect(result.left).to.deep.equal([]);
      expect(result.code).to.equal(0);
      expect((await world.pods(ns, 'whole')).map(uidOf)).to.deep.equal([whole]);
      await running(4);
      const [half] = await world.pods(ns, 'half');
      expect(tolerations(half)).to.deep.equal(ours('amd64'));
      expect(tolerations(at(await world.get('DaemonSet', ns, 'agent'), 'spec', 'template'))).to.deep.equal(
        ours('arm64'),
      );
      expect(await clean()).to.deep.include({ code: 0, removed: counts(0, 0, 0, 0), left: [] });
    });

    it('takes away what an earlier key left, and leaves the taints of others alone', async () => {
      const foreign = [
        { key: 'dedicated', value: 'gpu', effect: 'PreferNoSchedule' },
        { key: 'supported-arch', value: 'of-others', effect: 'PreferNoSchedule' },
      ];
      await world.patch('Node', '', 'arm64-1', { spec: { taints: foreign } });
      try {
        await world.create(
          deployment(ns, 'web', { images: [world.image('multi')] }),
          daemonSet(ns, 'agent', { images: [world.image('multi')] }),
        );
        await settle(['--taints.key', 'old.example.com/arch'], 'SIGTERM', 'old.example.com/arch');
        expect(taints(await world.node('arm64-1'))).to.include('old.example.com/arch=arm64:NoSchedule');
        const { code, left } = await clean();
        expect(left).to.deep.equal([]);
        expect(code).to.equal(0);
        expect(at(await world.node('arm64-1'), 'spec', 'taints')).to.deep.equal(foreign);
        expect(taints(await world.node('amd64-1'))).to.deep.equal([]);
        expect(await carrying()).to.deep.equal([]);
      } finally {
        await world.patch('Node', '', 'arm64-1', { spec: { taints: null } });
      }
    });

    it('restarts workloads without their going down', async () => {
      await world.create(
        deployment(ns, 'web', { images: [world.image('multi')], replicas: 5 }),
        statefulSet(ns, 'store', { images: [world.image('multi')], replicas: 3 }),
        daemonSet(ns, 'agent', { images: [world.image('multi')] }),
      );
      await settle();
      await running(10);
      let over = false;
      const finished = clean().finally(() => {
        over = true;
      });
      const least = { web: 5, store: 3, agent: 2 };
      while (!over) {
        for (const app of ['web', 'store', 'agent'] as const)
          least[app] = Math.min(least[app], (await world.pods(ns, app)).filter(isReady).length);
      }
      const { code, removed, left } = await finished;
      expect([code, left]).to.deep.equal([0, []]);
      expect(removed).to.deep.equal(counts(2, 1, 10));
      expect(least.web, 'ready pods of web').to.be.at.least(4);
      expect(least.store, 'ready pods of store').to.be.at.least(2);
      expect(least.agent, 'ready pods of agent').to.be.at.least(1);
      expect(await carrying()).to.deep.equal([]);
    });
  });
}
