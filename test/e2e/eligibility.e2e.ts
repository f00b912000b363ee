import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { ours, runs, scheduledOn, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, deployment, pod } from '../support/workloads.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const STATEMENT = 'archaware.dev/architectures';
const IGNORE = 'archaware.dev/ignore';

describe('what decides in addition to registries, on a real control plane that adds no tolerations of its own', () => {
  let world: LiveWorld;
  let controller: RunningController;

  before(async () => {
    const apiServerArgs = ['--disable-admission-plugins=DefaultTolerationSeconds'];
    world = await startWorld({ cluster: { apiServerArgs } });
    const overrides = `[{pattern: ${world.registry.host}/legacy/*, architectures: [arm64]}]`;
    controller = await world.run(['--images.overrides', overrides, '--pods.excludeNamespaces', 'excluded-*']);
  });
  after(() => world?.stop());

  /** After this, what was created before has been looked at: a pod that came later has been served. */
  async function eventuallyPassed(): Promise<void> {
    const name = `sentinel-${sentinels++}`;
    await world.create(pod('default', name, { images: [world.image('multi')] }));
    await world.eventuallyTolerates('default', name, ours('amd64', 'arm64'));
  }
  let sentinels = 0;

  async function expectLeftAlone(namespace: string, name: string): Promise<void> {
    await eventuallyPassed();
    expect(tolerations(await world.get('Pod', namespace, name))).to.deep.equal([]);
  }

  it('adds the list of tolerations to a pod that has none', async () => {
    const namespace = await world.namespace('no-list');
    const spec = { schedulerName: 'nobody' };
    await world.create(pod(namespace, 'bare', { images: [world.image('multi')], spec }));
    const found = await world.eventuallyTolerates(namespace, 'bare', ours('amd64', 'arm64'));
    // Nothing else created the list: it has archaware's two entries.
    expect(at(found, 'spec', 'tolerations')).to.have.length(2);
    await world.create(deployment(namespace, 'app', { images: [world.image('arm64')], replicas: 3 }));
    await world.eventually('its pods to run', async () => {
      const pods = await world.pods(namespace, 'app');
      return pods.length === 3 && pods.every(runs);
    });
  });

  it('asks no registry about an image that images.overrides answers', async () => {
    const namespace = await world.namespace('overridden');
    await world.registry.forgetRequests();
    await world.create(
      pod(namespace, 'legacy', { images: [`${world.registry.host}/legacy/app:1`] }),
      daemonSet(namespace, 'agent', { images: [`${world.registry.host}/legacy/agent:1`] }),
    );
    await world.eventuallyTolerates(namespace, 'legacy', ours('arm64'));
    await world.eventually('the daemon to run on the arm64 node', async () => {
      const pods = await world.pods(namespace, 'agent');
      return pods.length === 1 && pods.every((one) => runs(one) && scheduledOn(one) === 'arm64-1');
    });
    const about = (await world.registry.requests()).filter(({ path }) => path.includes('/legacy/'));
    expect(about).to.deep.equal([]);
  });

  it('does not ask about an image that is never pulled, which narrows nothing', async () => {
    const namespace = await world.namespace('never-pulled');
    const local = { name: 'local', image: world.image('local-only'), imagePullPolicy: 'Never' };
    const containers = [local, { name: 'other', image: world.image('arm64') }];
    await world.create(
      pod(namespace, 'all', { images: [world.image('local-only')], pullPolicy: 'Never' }),
      pod(namespace, 'some', { images: [], spec: { containers } }),
    );
    await world.eventuallyTolerates(namespace, 'all', ours('amd64', 'arm64'));
    await world.eventuallyTolerates(namespace, 'some', ours('arm64'));
    const about = (await world.registry.requests()).filter(({ path }) => path.includes('local-only'));
    expect(about).to.deep.equal([]);
  });

  it("takes a pod's own statement for it, and asks nobody", async () => {
    const namespace = await world.namespace('stated');
    const images = [world.image('stated-only')];
    await world.create(
      pod(namespace, 'one', { images, annotations: { [STATEMENT]: 'arm64' } }),
      pod(namespace, 'two', { images, annotations: { [STATEMENT]: ' aarch64, x86_64 ' } }),
      pod(namespace, 'all', { images, annotations: { [STATEMENT]: 'all' } }),
      daemonSet(namespace, 'agent', { images, annotations: { [STATEMENT]: 'arm64' } }),
    );
    await world.eventuallyTolerates(namespace, 'one', ours('arm64'));
    await world.eventuallyTolerates(namespace, 'two', ours('amd64', 'arm64'));
    await world.eventuallyTolerates(namespace, 'all', ours('amd64', 'arm64'));
    await world.eventually('the template to tolerate arm64 only', async () => {
      const found = at(await world.get('DaemonSet', namespace, 'agent'), 'spec', 'template');
      return tolerations(found).join() === ours('arm64').join();
    });
    const about = (await world.registry.requests()).filter(({ path }) => path.includes('stated-only'));
    expect(about).to.deep.equal([]);
  });

  it('says so where a statement cannot be read, and goes by the images', async () => {
    const namespace = await world.namespace('misstated');
    const annotations = { [STATEMENT]: 'amd64 or arm64' };
    await world.create(pod(namespace, 'wrong', { images: [world.image('arm64')], annotations }));
    const note = await world.eventuallyEvent(namespace, 'ConfigurationRejected', /archaware\.dev\/architectures/);
    expect(note)
      .to.include('amd64 or arm64')
      .and.to.match(/expected/);
    await world.eventuallyTolerates(namespace, 'wrong', ours('arm64'));
  });

  it('leaves a labelled pod alone until the label is gone', async () => {
    const namespace = await world.namespace('ignored-pod');
    const labels = { [IGNORE]: 'true' };
    await world.create(pod(namespace, 'ignored', { images: [world.image('multi')], labels }));
    await expectLeftAlone(namespace, 'ignored');
    expect(await controller.metric('archaware_pods', { outcome: 'ignored' })).to.be.at.least(1);
    await world.patch('Pod', namespace, 'ignored', { metadata: { labels: { [IGNORE]: null } } });
    await world.eventuallyTolerates(namespace, 'ignored', ours('amd64', 'arm64'));
  });

  it('leaves a labelled namespace alone until the label is gone', async () => {
    const namespace = await world.namespace('ignored-namespace', { [IGNORE]: 'true' });
    const images = [world.image('multi')];
    await world.create(pod(namespace, 'ignored', { images }), daemonSet(namespace, 'agent', { images }));
    await expectLeftAlone(namespace, 'ignored');
    expect(tolerations(at(await world.get('DaemonSet', namespace, 'agent'), 'spec', 'template'))).to.deep.equal([]);
    await world.patch('Namespace', '', namespace, { metadata: { labels: { [IGNORE]: 'false' } } });
    await world.eventuallyTolerates(namespace, 'ignored', ours('amd64', 'arm64'));
    await world.eventually('the daemon to run on both', async () => {
      const pods = await world.pods(namespace, 'agent');
      return pods.length === 2 && pods.every(runs);
    });
  });

  it('begins to leave a namespace alone when it is labelled later', async () => {
    const namespace = await world.namespace('ignored-later');
    await world.create(pod(namespace, 'before', { images: [world.image('multi')] }));
    await world.eventuallyTolerates(namespace, 'before', ours('amd64', 'arm64'));
    await world.patch('Namespace', '', namespace, { metadata: { labels: { [IGNORE]: 'true' } } });
    await world.eventually('the pod to count as ignored', async () => {
      return (await controller.metric('archaware_pods', { outcome: 'ignored' })) > 0;
    });
    await world.create(pod(namespace, 'after', { images: [world.image('multi')] }));
    await expectLeftAlone(namespace, 'after');
  });

  it('leaves excluded namespaces alone', async () => {
    const namespace = await world.namespace('excluded-team');
    await world.create(pod(namespace, 'excluded', { images: [world.image('multi')] }));
    await expectLeftAlone(namespace, 'excluded');
  });

  it('serves only the namespaces that pods.namespaceSelector selects, also when they are labelled later', async () => {
    await world.stopControllers();
    const labels = { team: 'a' };
    await world.patch('Namespace', '', 'default', { metadata: { labels } });
    const chosen = await world.namespace('chosen', labels);
    const other = await world.namespace('other');
    controller = await world.run(['--pods.namespaceSelector', 'team in (a,b)']);
    for (const namespace of [chosen, other]) {
      await world.create(pod(namespace, 'one', { images: [world.image('multi')] }));
    }
    await world.eventuallyTolerates(chosen, 'one', ours('amd64', 'arm64'));
    await expectLeftAlone(other, 'one');
    await world.patch('Namespace', '', other, { metadata: { labels: { team: 'b' } } });
    await world.eventuallyTolerates(other, 'one', ours('amd64', 'arm64'));
  });

  it('uses no architecture outside architectures.schedulable', async () => {
    await world.stopControllers();
    controller = await world.run(['--architectures.schedulable', 'arm64']);
    const namespace = await world.namespace('schedulable');
    await world.create(
      pod(namespace, 'both', { images: [world.image('multi')] }),
      pod(namespace, 'neither', { images: [world.image('amd64')] }),
    );
    await world.eventuallyTolerates(namespace, 'both', ours('arm64'));
    await world.eventuallyEvent(namespace, 'NoCommonArchitecture', /architectures\.schedulable \(arm64\)/);
    expect(tolerations(await world.get('Pod', namespace, 'neither'))).to.deep.equal([]);
  });
});
