import { expect } from 'chai';
import { ours } from '../support/objects.ts';
import { type Product, startProduct } from '../support/product.ts';

describe('names of architectures that no node can have', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('make an image count as not known: its pod is not held forever, and an Event names image and architecture', async () => {
    const image = product.image('strange');
    await product.run(['--images.fallbackAfter', '0s']);
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'strange', images: [image] });
    await product.eventuallyTolerates('default', 'strange', ours('amd64', 'arm64'));
    const note = await product.eventuallyEvent('default', 'ImageUnresolvable', /linux\/armv7l/);
    expect(note).to.include(image).and.to.include('is not a known GOARCH');
  });

  it('are ignored in an entry of an index, and the other entries count', async () => {
    await product.run();
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'entry', images: [product.image('strange-entry')] });
    await product.eventuallyTolerates('default', 'entry', ours('amd64'));
  });

  it("are reported in an Event if a pod's annotation has them, and its images decide", async () => {
    await product.run();
    await product.eventuallyTainted();
    const annotations = { 'archaware.dev/architectures': 'x86' };
    await product.cluster.createPod({
      name: 'p',
      images: [product.image('app', ['arm64'])],
      metadata: { annotations },
    });
    await product.eventuallyEvent(
      'default',
      'ConfigurationRejected',
      /archaware\.dev\/architectures: got "x86".*amd64, or 386/,
    );
    await product.eventuallyTolerates('default', 'p', ours('arm64'));
  });
});
