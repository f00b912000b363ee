import { expect } from 'chai';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { PODS, type Product, startProduct, tolerated, workload } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
const METRIC = 'archaware_dropped_architectures';
/** Pods of the new template stay Pending, so those of the old one go on running. */
const HELD_UP = { nodeSelector: { pool: 'full' } };
const BOTH = ['amd64', 'arm64'];

describe('run, when an update drops an architecture', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  const drops = async (name: string) =>
    (await product.list(EVENTS)).filter(
      ({ reason, regarding }) => reason === 'ArchitectureDropped' && at(regarding, 'name') === name,
    );
  const told = (name: string) =>
    product.eventually(`an Event on ${name}`, async () => {
      const found = await drops(name);
      return found.length > 0 && found;
    });
  const podsOf = async (app: string) =>
    (await product.list(PODS)).filter((pod) => at(pod, 'metadata', 'labels', 'app') === app);
  const run = (app: string, count: number) =>
    product.eventually(`${count} pods of ${app} to run`, async () => {
      const found = (await podsOf(app)).filter((pod) => at(pod, 'status', 'phase') === 'Running');
      return found.length === count && found;
    });
  /** Shows the digest that was pulled in the status of running pods, as a kubelet does. */
  async function pulled(app: string, count: number, digest: string): Promise<void> {
    for (const pod of await run(app, count)) {
      const statuses = objects(at(pod, 'status', 'containerStatuses'));
      const containerStatuses = statuses.map((each) => ({
        ...each,
        imageID: `${product.registry.host}/app@${digest}`,
      }));
      await product.patch(`${PODS}/${text(at(pod, 'metadata', 'name'))}/status`, { status: { containerStatuses } });
    }
  }
  const counted = (controller: RunningController, count: number) =>
    product.eventually(`the metric to be ${count}`, async () => {
      const { text: metrics } = await controller.get('/metrics');
      return metrics.split('\n').includes(`${METRIC} ${count}`);
    });
  const deploy = (name: string, image: string, replicas = 4, template: JsonObject = {}) =>
    product.cluster.apply(workload('Deployment', name, [image], { spec: { replicas }, template }));
  /** A workload whose drop is noticed: when its Event is there, all pods have been looked at since. */
  async function lookedAt(): Promise<void> {
    await deploy('witness', product.image('witness-old', BOTH));
    await run('witness', 4);
    await deploy('witness', product.image('witness-new', ['amd64']), 4, HELD_UP);
    await told('witness');
  }

  it('writes an Event on the Deployment that names the image, both sets and the pods, and counts it until the rollout is over', async () => {
    const [old, now] = [product.image('app', BOTH), product.image('next', ['amd64'])];
    const controller = await product.run();
    await deploy('web', old);
    const pods = await run('web', 4);
    const onArm = pods.filter((pod) => at(pod, 'spec', 'nodeName') === 'arm64-1').length;
    await deploy('web', now, 4, HELD_UP);
    const [event] = await told('web');
    const deployment = await product.get('/apis/apps/v1/namespaces/default/deployments/web');
    expect(event?.regarding).to.deep.include({
      kind: 'Deployment',
      uid: at(deployment, 'metadata', 'uid'),
    });
    const count = onArm === 1 ? '1 running pod is on a node' : `${onArm} running pods are on nodes`;
    expect(text(event?.note)).to.equal(
      `arm64 was dropped: ${now} of container c0 runs on amd64, and what runs now, ${old}, runs on amd64, arm64; ` +
        `${count} that the new template can no longer use; go back to the earlier image, or keep room on the nodes that are left`,
    );
    await counted(controller, onArm > 0 ? 1 : 0);
    await deploy('web', now, 4, { nodeSelector: { pool: null } });
    await counted(controller, 0);
    expect(await drops('web')).to.have.length(1);
  });

  it('notices a tag that was pushed again, by the digest of what runs', async () => {
    const tag = product.image('app', BOTH);
    const digest = product.registry.put('app', '1', BOTH);
    await product.run(['--images.cache.tagTtl', '10s']);
    await deploy('web', tag, 2);
    await pulled('web', 2, digest);
    const [first] = await podsOf('web');
    const createdAt = Date.parse(text(at(first, 'metadata', 'creationTimestamp')));
    // Times of creation are whole seconds, and the order of pods follows from them.
    await product.eventually('the next second', async () => Date.now() > createdAt + 2_000);
    product.registry.put('app', '1', ['amd64']);
    let replicas = 2;
    await product.eventually('a pod of the new image', async () => {
      replicas = Math.min(replicas + 1, 20);
      await deploy('web', tag, replicas);
      await run('web', replicas);
      return (await podsOf('web')).some(({ spec }) => tolerated(spec).join() === 'amd64');
    });
    const [event] = await told('web');
    expect(text(event?.note)).to.contain(`what runs now, ${product.registry.host}/app@${digest}, runs on amd64, arm64`);
  });

  it('writes none for a gain, an override or an annotation', async () => {
    const flags = ['--images.overrides', JSON.stringify([{ pattern: '*/forced:1', architectures: ['amd64'] }])];
    const [old, less] = [product.image('app', BOTH), product.image('less', ['amd64'])];
    const forced = product.image('forced', BOTH);
    await product.run(flags);
    await deploy('gains', less);
    await deploy('forces', old);
    await deploy('states', old);
    await Promise.all(['gains', 'forces', 'states'].map((name) => run(name, 4)));
    await deploy('gains', old, 4, HELD_UP);
    await deploy('forces', forced, 4, HELD_UP);
    const stated = JSON.parse(workload('Deployment', 'states', [less], { spec: { replicas: 4 }, template: HELD_UP }));
    stated.spec.template.metadata.annotations = { 'archaware.dev/architectures': 'amd64' };
    await product.cluster.apply(JSON.stringify(stated));
    await lookedAt();
    for (const name of ['gains', 'forces', 'states']) expect(await drops(name), name).to.deep.equal([]);
  });

  it('writes none where the registry does not say what the new image runs on', async () => {
    await product.run(['--images.fallbackAfter', '1s']);
    await deploy('web', product.image('app', BOTH));
    await run('web', 4);
    await deploy('web', `${product.registry.host}/gone:1`, 4, HELD_UP);
    await lookedAt();
    expect(await drops('web')).to.deep.equal([]);
  });

  it('writes it on a DaemonSet whose new template loses a node that it runs on', async () => {
    const [old, now] = [product.image('app', BOTH), product.image('next', ['amd64'])];
    await product.run();
    const daemonSet = (image: string) =>
      workload('DaemonSet', 'agent', [image], { spec: { updateStrategy: { type: 'OnDelete' } } });
    await product.cluster.apply(daemonSet(old));
    await pulled('agent', 2, product.registry.put('app', '1', BOTH));
    await product.cluster.apply(daemonSet(now));
    const [event] = await told('agent');
    expect(at(event?.regarding, 'kind')).to.equal('DaemonSet');
    expect(text(event?.note)).to.match(/^arm64 was dropped: .* 1 running pod is on a node that the new template/);
  });

  it('counts it again after a restart, and writes at most one more Event', async () => {
    const controller = await product.run();
    await deploy('web', product.image('app', BOTH), 6);
    const digest = product.registry.put('app', '1', BOTH);
    await pulled('web', 6, digest);
    await deploy('web', product.image('next', ['amd64']), 6, HELD_UP);
    await told('web');
    await controller.stop('SIGTERM');
    const next = await product.run();
    await product.eventually('the Event of the next leader', async () => (await drops('web')).length === 2);
    await counted(next, (await run('web', 6)).some((pod) => at(pod, 'spec', 'nodeName') === 'arm64-1') ? 1 : 0);
    await lookedAt();
    expect(await drops('web')).to.have.length(2);
  });
});
