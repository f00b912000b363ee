import { expect } from 'chai';
import { FIXTURES, TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { pushFixtures } from '../../testimg/push.ts';
import { type BrokenProjects, startBrokenProjects } from '../support/broken-projects.ts';
import { ours, runs, taints, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

describe('images that nothing is known of, on the real control plane', () => {
  let world: LiveWorld;
  let controller: RunningController;

  before(async () => {
    world = await startWorld();
  });
  after(() => world?.stop());

  describe('at the first start', () => {
    const tainted = async () => (await Promise.all(['amd64-1', 'arm64-1'].map(world.node))).flatMap(taints).length;
    const stillWaiting = () =>
      world.eventually('the log to say that bootstrap is over', async () => {
        const line = controller.logs().find((text) => text.includes('bootstrap over'));
        return line !== undefined && Number(/"stillWaiting":(\d+)/.exec(line)?.[1]);
      });
    afterEach(() => world.stopControllers());

    it('taints no node before bootstrap.timeout is over while a lookup is under way', async () => {
      const namespace = await world.namespace('bootstrap');
      const spec = { nodeSelector: { 'example.com/nowhere': '' } };
      await world.create(pod(namespace, 'hanging', { images: [world.image('wide')], spec }));
      world.registry.kill('SIGSTOP');
      try {
        const started = performance.now();
        controller = await world.run(['--bootstrap.timeout', '4s']);
        await world.eventually('the nodes to be tainted', async () => (await tainted()) === 2);
        expect(performance.now() - started).to.be.at.least(4_000);
        expect(await stillWaiting()).to.equal(1);
      } finally {
        world.registry.kill('SIGCONT');
      }
      // It follows as backlog.
      await world.eventually('the pod to be served', async () =>
        tolerations(await world.get('Pod', namespace, 'hanging')).includes('supported-arch=s390x:NoSchedule'),
      );
      await world.cluster.kubectl(['taint', 'nodes', '--all', 'supported-arch:NoSchedule-']);
      await world.cluster.kubectl(['annotate', 'nodes', '--all', 'archaware.dev/managed-']);
    });

    it('taints nodes as soon as every lookup has had one outcome, even a failure', async () => {
      const namespace = await world.namespace('bootstrap-failed');
      await world.create(pod(namespace, 'missing', { images: [world.image('nope')] }));
      controller = await world.run(['--bootstrap.timeout', '1h', '--images.fallbackAfter', '1h']);
      await world.eventually('the nodes to be tainted', async () => (await tainted()) === 2);
      expect(await stillWaiting()).to.equal(0);
      await world.remove('Pod', namespace, 'missing');
    });
  });

  describe('with images.unresolvable: open', () => {
    before(async () => {
      const flags = ['--images.fallbackAfter', '3s', '--images.cache.tagTtl', '1s', '--images.cache.failureTtl', '1s'];
      controller = await world.run(flags);
    });
    after(() => world.stopControllers());

    it('says which image was not found and why, and holds the pod no longer than images.fallbackAfter', async () => {
      const namespace = await world.namespace('not-found');
      const created = performance.now();
      await world.create(pod(namespace, 'missing', { images: [world.image('nope')] }));
      const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /not-found/);
      expect(note).to.include(world.image('nope')).and.to.include(world.registry.host);
      await world.eventuallyTolerates(namespace, 'missing', ours('amd64', 'arm64'));
      expect(performance.now() - created).to.be.within(3_000, 20_000);
      const open = await world.eventuallyEvent(namespace, 'OpenPlacement', /not resolved/);
      expect(open).to.include(world.image('nope'));
      expect(await controller.metric('archaware_pods', { outcome: 'open' })).to.be.at.least(1);
      expect(await controller.metric('archaware_unresolvable_images')).to.be.at.least(1);
    });

    it('stays within what the other images run on', async () => {
      const namespace = await world.namespace('half-known');
      await world.create(pod(namespace, 'half', { images: [world.image('nope'), world.image('arm64')] }));
      await world.eventuallyTolerates(namespace, 'half', ours('arm64'));
    });

    it('gives up on a malformed name, and on an artifact that is not an image', async () => {
      const namespace = await world.namespace('no-images');
      const names = { malformed: 'Registry.example.com/UPPER/Case', chart: world.image('helm-chart') };
      for (const [name, image] of Object.entries(names)) await world.create(pod(namespace, name, { images: [image] }));
      for (const name of Object.keys(names)) await world.eventuallyTolerates(namespace, name, ours('amd64', 'arm64'));
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(malformed\)/);
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(unsupported\)/);
    });

    it('lets open pods and templates follow when an architecture joins the cluster', async () => {
      const namespace = await world.namespace('joining');
      const spec = { nodeSelector: { 'kubernetes.io/arch': 's390x' } };
      await world.create(
        pod(namespace, 'missing', { images: [world.image('nope')], spec }),
        daemonSet(namespace, 'agent', { images: [world.image('nope')] }),
      );
      await world.eventuallyTolerates(namespace, 'missing', ours('amd64', 'arm64'));
      await world.cluster.createNode({ name: 's390x-1', architecture: 's390x' });
      // A new architecture counts after a minute; this is the one test that waits for it.
      await world.cluster.waitFor(
        'the pod to tolerate the new architecture',
        async () =>
          tolerations(await world.get('Pod', namespace, 'missing')).includes('supported-arch=s390x:NoSchedule'),
        150_000,
      );
      await world.eventually('the pod to run on the new node', async () =>
        runs(await world.get('Pod', namespace, 'missing')),
      );
      await world.eventually('the daemon to run on all three', async () => {
        const pods = await world.pods(namespace, 'agent');
        return pods.length === 3 && pods.every(runs);
      });
    });

    it('goes by what it knew of an image while the registry is away', async () => {
      const namespace = await world.namespace('stale');
      await world.create(pod(namespace, 'before', { images: [world.image('docker-list')] }));
      await world.eventuallyTolerates(namespace, 'before', ours('amd64', 'arm64'));
      await world.registry.stop();
      let count = 0;
      await world.eventually('an answer that is stale', async () => {
        const name = `pod-${count++}`;
        await world.create(pod(namespace, name, { images: [world.image('docker-list')] }));
        await world.eventuallyTolerates(namespace, name, ours('amd64', 'arm64'));
        return (await controller.metric('archaware_resolver_cache_total', { result: 'stale' })) > 0;
      });
      expect(await world.events(namespace, 'OpenPlacement')).to.deep.equal([]);
      await world.registry.start();
    });
  });

  describe('before images.fallbackAfter is over', () => {
    before(async () => {
      await world.registry.start();
      controller = await world.run(['--images.fallbackAfter', '1h', '--images.cache.failureTtl', '1s']);
    });
    after(() => world.stopControllers());

    it('does not hold up the pods of a system namespace or class', async () => {
      const namespace = await world.namespace('critical');
      const images = [world.image('nope')];
      await world.create(
        pod('kube-system', 'dns', { images }),
        pod(namespace, 'network', { images, spec: { priorityClassName: 'system-cluster-critical' } }),
        pod(namespace, 'ordinary', { images }),
      );
      await world.eventuallyTolerates('kube-system', 'dns', ours('amd64', 'arm64', 's390x'));
      await world.eventuallyTolerates(namespace, 'network', ours('amd64', 'arm64', 's390x'));
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /nope/);
      expect(tolerations(await world.get('Pod', namespace, 'ordinary'))).to.deep.equal([]);
    });

    it('lets a system pod go when its registry does not answer at all', async () => {
      world.registry.kill('SIGSTOP');
      try {
        await world.create(pod('kube-system', 'proxy', { images: [world.image('windows-mixed')] }));
        const created = performance.now();
        await world.eventuallyTolerates('kube-system', 'proxy', ours('amd64', 'arm64', 's390x'));
        expect(performance.now() - created).to.be.below(10_000);
      } finally {
        world.registry.kill('SIGCONT');
      }
    });

    it('serves the pods that waited as soon as the registry is back', async () => {
      const namespace = await world.namespace('registry-down');
      await world.registry.stop();
      await world.create(
        pod(namespace, 'one', { images: [world.image('nested')] }),
        pod(namespace, 'two', { images: [world.image('untyped'), world.image('arm64')] }),
        deployment(namespace, 'three', { images: [world.image('nested')], replicas: 3 }),
        daemonSet(namespace, 'four', { images: [world.image('attestations')] }),
      );
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /nested could not be resolved \(unavailable\)/);
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', /untyped/);
      const waiting = () => controller.metric('archaware_pods', { outcome: 'waiting' });
      await world.eventually('five pods to wait', async () => (await waiting()) >= 5);
      await world.registry.start();
      await world.eventuallyTolerates(namespace, 'one', ours('amd64', 'arm64', 's390x'));
      await world.eventuallyTolerates(namespace, 'two', ours('arm64'));
      await world.eventually('every pod to run', async () => {
        const pods = await world.list('Pod', namespace);
        return pods.length === 7 && pods.every(runs);
      });
      expect(await world.events(namespace, 'OpenPlacement')).to.deep.equal([]);
    });
  });

  describe('while one project of a registry is broken', () => {
    /** Each is another registry, so that each project is the only one that is broken. */
    const registries = new Map<string, BrokenProjects>();
    const tenants = Array.from({ length: 10 }, (_, index) => `tenant-${index}`);
    const rows: [project: string, answered: RegExp][] = [
      ['bad-gateway', /answers 502/],
      ['overloaded', /answers 503/],
      ['limited', /limit of requests/],
      ['silent', /did not answer/],
      ['no-login', /answers 500/],
    ];
    const registryOf = (project: string) => registries.get(project) ?? expect.fail(project);

    before(async () => {
      for (const project of [...rows.map(([name]) => name), 'headless']) {
        const registry = await startBrokenProjects();
        registries.set(project, registry);
        world.allowInsecure(registry.host);
      }
      for (const name of [...tenants, 'shop']) await world.namespace(name);
      // No pod is open during the test: what is placed was looked up.
      const flags = ['--images.fallbackAfter', '1h', '--images.cache.alwaysTagTtl', '1s', '--registries.timeout', '5s'];
      controller = await world.run(flags);
    });
    after(async () => {
      await world.stopControllers();
      await Promise.all([...registries.values()].map((registry) => registry.stop()));
      for (const name of [...tenants, 'shop']) {
        await world.cluster.request('DELETE', `/api/v1/namespaces/${name}/pods?gracePeriodSeconds=0`);
      }
    });

    for (const [project, answered] of rows) {
      it(`places the pods of another project while 200 pods of ten namespaces wait for the one that is ${project}`, async () => {
        const { host, requests } = registryOf(project);
        for (const namespace of tenants) {
          const images = Array.from({ length: 20 }, (_, index) => `${host}/${project}/${namespace}-${index}:t`);
          await world.create(
            ...images.map((image, index) => pod(namespace, `${project}-${index}`, { images: [image] })),
          );
        }
        await world.eventuallyEvent('tenant-0', 'ImageUnresolvable', answered);
        // After two answers 429 the project is paused.
        const failures = project === 'limited' ? 2 : 5;
        await world.eventually('the project to fail often', async () => requests().length >= failures);
        const good = Array.from({ length: 10 }, (_, index) => `${project}-good-${index}`);
        for (const name of good) await world.create(pod('shop', name, { images: [`${host}/local/${name}:t`] }));
        for (const name of good) await world.eventuallyTolerates('shop', name, ours('amd64'));
        expect(tolerations(await world.get('Pod', 'tenant-0', `${project}-0`))).to.deep.equal([]);
        expect(await world.events('shop', 'OpenPlacement')).to.deep.equal([]);
      });
    }

    it('says in the Event that an image was not asked for, and why', async () => {
      const { host } = registryOf('limited');
      const note = await world.eventuallyEvent(
        'tenant-9',
        'ImageUnresolvable',
        /was not looked up yet \(rate-limited\)/,
      );
      expect(note).to.include(`${host} has reached its limit of requests for its project limited`);
    });

    it('goes on to check the tags of another project with HEAD where one answers it without a digest', async () => {
      const { host, requests } = registryOf('headless');
      let count = 0;
      const methods = (repository: string) => requests().filter((request) => request.endsWith(` ${repository}`));
      const askAgain = async (repository: string, until: () => boolean) =>
        world.eventually(`another check of ${repository}`, async () => {
          const name = `checks-${count++}`;
          await world.create(pod('shop', name, { images: [`${host}/${repository}:t`], pullPolicy: 'Always' }));
          await world.eventuallyTolerates('shop', name, ours('amd64'));
          return until();
        });
      await askAgain('headless/app', () => methods('headless/app').includes('HEAD headless/app'));
      await askAgain('local/app', () => methods('local/app').length >= 3);
      expect(methods('local/app')).to.deep.equal(['GET local/app', 'HEAD local/app', 'HEAD local/app']);
    });
  });

  describe('as the operator wishes', () => {
    afterEach(() => world.stopControllers());

    it('waits as long as it takes with images.unresolvable: wait', async () => {
      const flags = [
        '--images.unresolvable',
        'wait',
        '--images.fallbackAfter',
        '0s',
        '--images.cache.failureTtl',
        '1s',
      ];
      controller = await world.run(flags);
      const namespace = await world.namespace('patient');
      await world.create(pod(namespace, 'missing', { images: [world.image('late')] }));
      const failures = () => controller.metric('archaware_image_resolutions_total', { result: 'not-found' });
      const before = await failures();
      await world.eventually('it to be asked again', async () => (await failures()) >= before + 3);
      expect(tolerations(await world.get('Pod', namespace, 'missing'))).to.deep.equal([]);
      expect(await world.events(namespace, 'OpenPlacement')).to.deep.equal([]);
      const fixtures = FIXTURES.filter(({ tag }) => tag === 'multi').map((fixture) => ({ ...fixture, tag: 'late' }));
      await pushFixtures({ registry: world.registry.host, repository: TESTIMG_REPOSITORY, insecure: true, fixtures });
      await world.eventuallyTolerates(namespace, 'missing', ours('amd64', 'arm64'));
    });

    it('falls back to the architectures that the operator named', async () => {
      const flags = [
        '--images.unresolvable',
        'fallback',
        '--architectures.fallback',
        'arm64',
        '--images.fallbackAfter',
        '1s',
      ];
      controller = await world.run(flags);
      const namespace = await world.namespace('falling-back');
      await world.create(
        pod(namespace, 'missing', { images: [world.image('nope')] }),
        pod(namespace, 'ruled-out', { images: [world.image('nope'), world.image('amd64')] }),
      );
      await world.eventuallyTolerates(namespace, 'missing', ours('arm64'));
      await world.eventuallyTolerates(namespace, 'ruled-out', ours('amd64'));
      expect(await world.eventuallyEvent(namespace, 'OpenPlacement', /fallback/)).to.include(world.image('nope'));
    });
  });
});
