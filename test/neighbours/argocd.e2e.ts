import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { carriedIn, outcome } from '../cli/both/carried.ts';
import { type LiveWorld, startWorld } from '../e2e/support/world.ts';
import { nameOf, runs } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { daemonSet, deployment, statefulSet } from '../support/workloads.ts';
import { type ArgoOptions, argoDifferences, argoSync, needsClients } from './support/clients.ts';

const NS = 'synced';
/** What somebody has put into Git, so the restart of `clean` is a difference. */
const RESTARTED = { annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } };

describe('Argo CD, beside archaware', function () {
  this.timeout(300_000);
  let world: LiveWorld;

  before(function () {
    needsClients(this, ['argocd']);
  });
  beforeEach(async () => {
    world = await startWorld();
    await world.namespace(NS);
  });
  afterEach(() => world?.stop());

  const { settle, nodeTaints, carrying, running } = carriedIn(
    () => world,
    () => NS,
  );

  /** Syncs as soon as Argo CD sees a difference, until the returned function is called. */
  function selfHeal(objects: readonly object[], options: ArgoOptions): () => Promise<void> {
    let isOver = false;
    const healing = (async () => {
      while (!isOver) {
        const found = await argoDifferences(world.cluster, objects, options);
        if (Object.keys(found).length > 0) await argoSync(world.cluster, objects, options);
      }
    })();
    // A test that fails before does not end it.
    healing.catch(() => undefined);
    return () => {
      isOver = true;
      return healing;
    };
  }

  const rows: [what: string, options: ArgoOptions][] = [
    ['with its default comparison', {}],
    ['with ServerSideApply', { serverSideApply: true, serverSideDiff: true }],
  ];
  for (const [what, options] of rows) {
    it(`heals itself while clean --stop works, ${what}: nobody is rolled again and again, and nothing is left`, async () => {
      const multi = { images: [world.image('multi')], replicas: 3 };
      const own = { ...multi, tolerations: [{ key: 'example.com/own', operator: 'Exists' }] };
      const objects = [
        deployment(NS, 'web', multi),
        deployment(NS, 'stamped', { ...multi, ...RESTARTED }),
        deployment(NS, 'pinned', { ...multi, images: [world.image('amd64')] }),
        statefulSet(NS, 'store', multi),
        daemonSet(NS, 'own', own),
        daemonSet(NS, 'plain', multi),
      ];
      const generations = async () => {
        const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;
        const found = (await Promise.all(kinds.map((kind) => world.list(kind, NS)))).flat();
        return Object.fromEntries(found.map((one) => [nameOf(one), Number(at(one, 'metadata', 'generation'))]));
      };
      await argoSync(world.cluster, objects, options);
      await running(16);
      await settle();
      await world.run();
      await world.create(deployment('archaware', 'archaware-controller', { images: multi.images }));
      const before = await generations();
      const stopHealing = selfHeal(objects, options);
      const flags = ['--yes', '--stop', '--output', 'json', '--pods', 'restart'];
      let isOver = false;
      const cleaned = world.command(['clean', '--kubeconfig', world.cluster.kubeconfig, ...flags]).finally(() => {
        isOver = true;
      });
      // The kubelet's part.
      await world.eventually('the Deployment to be scaled', async () => {
        const scaled = await world.get('Deployment', 'archaware', 'archaware-controller');
        return at(scaled, 'spec', 'replicas') === 0;
      });
      await world.stopControllers('SIGTERM');
      while (!isOver) {
        const running = (await world.list('Pod', NS)).filter(runs).map((one) => at(one, 'metadata', 'labels', 'app'));
        expect(running).to.include.members(Object.keys(before));
      }
      const { code, left, kept } = outcome(await cleaned);
      expect([code, left]).to.deep.equal([0, []]);
      // Git takes the restart of `stamped` back, so pods that it has not replaced until then stay.
      const others = kept.map(({ what }) => what.split('-')[0]).filter((name) => name !== `Pod ${NS} stamped`);
      expect(others).to.deep.equal(Array(3).fill(`Pod ${NS} pinned`));

      const rolled = { web: 1, stamped: 2, pinned: 0, store: 1, own: 1, plain: 1 };
      const wanted = Object.fromEntries(
        Object.entries(rolled).map(([name, more]) => [name, (before[name] ?? 0) + more]),
      );
      await world.eventually('what Git says to be back', async () => {
        const found = await argoDifferences(world.cluster, objects, options);
        return Object.keys(found).length === 0 && (await generations()).stamped === wanted.stamped;
      });
      await stopHealing();
      await running(16);
      expect(await generations()).to.deep.equal(wanted);
      expect(await nodeTaints()).to.deep.equal([]);
      expect((await carrying()).filter((name) => /^(web|store|plain)/.test(name))).to.deep.equal([]);
    });
  }

  it('has warnings of the webhook in the log of its controller, not in the result of a sync', async () => {
    await runWithWebhook(world, '--bootstrap.timeout', '2s');
    const web = (name: string) => deployment(NS, name, { images: [world.image('amd64')] });
    await world.create(web('known'));
    await world.eventually('its image to be known', async () => (await carrying()).length > 0);
    const { messages, log } = await argoSync(world.cluster, [web('web')], {});
    expect(messages).to.deep.equal(['deployment.apps/web created']);
    expect(log).to.match(/Warning: image \S+ runs on amd64 only; the pods will run on amd64 nodes/);
  });
});
