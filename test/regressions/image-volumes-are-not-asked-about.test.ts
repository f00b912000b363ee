import { expect } from 'chai';
import { at } from '../simulator/json.ts';
import { ours } from '../support/objects.ts';
import { type Product, startProduct, tolerated, workload } from '../support/product.ts';

// archaware-controller up to 0.1 ignored image volumes because nothing in them is executed. But the kubelet refuses an
// index without the node's platform, and the pod waits with ErrImagePull for ever.
describe('image volumes count', () => {
  let product: Product;
  let wide: string;
  beforeEach(async () => {
    product = await startProduct();
    wide = product.image('wide', ['amd64', 'arm64']);
  });
  afterEach(() => product.stop());

  const withVolume = (reference: string) => ({ volumes: [{ name: 'data', image: { reference } }] });
  const agent = () => product.get('/apis/apps/v1/namespaces/default/daemonsets/agent');
  const templateTolerates = (...architectures: string[]) =>
    product.eventually(`the template to tolerate ${architectures.join()}`, async () => {
      const set = await agent();
      return tolerated(at(set, 'spec', 'template', 'spec')).join() === architectures.join() && set;
    });

  it('if the image is an index, in pods and in templates', async () => {
    const spec = withVolume(product.image('model', ['arm64']));
    await product.cluster.createPod({ name: 'a', images: [wide], spec });
    await product.cluster.apply(workload('DaemonSet', 'agent', [wide], { template: spec }));
    await product.run();
    await product.eventuallyTolerates('default', 'a', ours('arm64'));
    await templateTolerates('arm64');
  });

  it('but not if it is a single manifest, of whatever platform', async () => {
    const spec = withVolume(product.image('model', ['s390x'], { single: true }));
    await product.cluster.createPod({ name: 'a', images: [wide], spec });
    await product.cluster.apply(workload('DaemonSet', 'agent', [wide], { template: spec }));
    await product.run();
    await product.eventuallyTolerates('default', 'a', ours('amd64', 'arm64'));
    await templateTolerates('amd64', 'arm64');
  });

  it('and the Event names the volume if nothing is in common', async () => {
    const spec = withVolume(product.image('model', ['s390x']));
    await product.cluster.createPod({ name: 'a', images: [wide], spec });
    await product.run();
    await product.eventuallyEvent('default', 'NoCommonArchitecture', /; volume data: \S+\/model:1 \(linux\/s390x\)$/);
    const { stdout } = await product.command(['explain', 'a']);
    expect(stdout).to.match(/volume data: \S+\/model:1: s390x; in common: none/);
    const plan = JSON.parse((await product.command(['plan', '--output', 'json'])).stdout);
    expect(plan.held[0].images[1]).to.deep.include({ volume: 'data', platforms: ['linux/s390x'] });
  });

  /** As the earlier version recorded it: without the image of the volume. */
  async function recordedBefore(model: string, ...architectures: string[]): Promise<number> {
    await product.cluster.apply(workload('DaemonSet', 'agent', [wide]));
    const controller = await product.run();
    await templateTolerates('amd64', 'arm64');
    await controller.stop();
    const tolerations = architectures.map((value) => ({
      key: 'supported-arch',
      operator: 'Equal',
      value,
      effect: 'NoSchedule',
    }));
    const recorded = JSON.parse(String(at(await agent(), 'metadata', 'annotations', 'archaware.dev/tolerations')));
    const set = await product.patch('/apis/apps/v1/namespaces/default/daemonsets/agent', {
      metadata: { annotations: { 'archaware.dev/tolerations': JSON.stringify({ ...recorded, tolerations }) } },
      spec: { template: { spec: { ...withVolume(model), tolerations } } },
    });
    return Number(at(set, 'metadata', 'generation'));
  }

  it('and a DaemonSet that was placed by the earlier version does not roll if its set stays the same', async () => {
    const generation = await recordedBefore(product.image('model', ['amd64', 'arm64']), 'amd64', 'arm64');
    await product.run();
    const set = await product.eventually('the record to have the volume', async () => {
      const now = await agent();
      return String(at(now, 'metadata', 'annotations', 'archaware.dev/tolerations')).includes('"volume ') && now;
    });
    expect(at(set, 'metadata', 'generation')).to.equal(generation);
  });

  it('and rolls once if its set changes', async () => {
    const generation = await recordedBefore(product.image('model', ['arm64']), 'amd64', 'arm64');
    await product.run();
    const set = await templateTolerates('arm64');
    expect(at(set, 'metadata', 'generation')).to.equal(generation + 1);
  });

  it('and stays unchanged while the registry is away', async () => {
    const model = product.image('model', ['arm64']);
    const generation = await recordedBefore(model, 'amd64', 'arm64');
    await product.registry.down();
    await product.run(['--images.fallbackAfter', '1s']);
    await product.eventuallyEvent(
      'default',
      'ImageUnresolvable',
      /image \S+\/model:1 of volume data could not be resolved/,
    );
    await product.cluster.createPod({ name: 'last', images: [wide] });
    await product.eventuallyEvent('default', 'OpenPlacement', /not resolved/);
    const set = await agent();
    expect(tolerated(at(set, 'spec', 'template', 'spec'))).to.deep.equal(['amd64', 'arm64']);
    expect(at(set, 'metadata', 'generation')).to.equal(generation);
  });
});
