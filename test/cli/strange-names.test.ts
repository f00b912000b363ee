import { expect } from 'chai';
import { type Product, startProduct } from '../support/product.ts';

describe('names of architectures that no node can have', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct();
  });
  afterEach(() => product.stop());

  it('in an image count as not known: its pod is not held for ever, and an Event names image and name', async () => {
    const image = product.fixture('strange');
    await product.run(['--images.fallbackAfter', '0s']);
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'strange', images: [image] });
    await product.eventuallyTolerates('strange', 'amd64', 'arm64');
    const note = await product.eventuallyTold('ImageUnresolvable', /linux\/armv7l/);
    expect(note).to.include(image).and.to.include('no Go toolchain names');
  });

  it('in an entry of an index are left out, and the others count', async () => {
    await product.run();
    await product.eventuallyTainted();
    await product.cluster.createPod({ name: 'entry', images: [product.fixture('strange-entry')] });
    await product.eventuallyTolerates('entry', 'amd64');
  });

  it("in a pod's annotation are named in an Event, and its images are what counts", async () => {
    await product.run();
    await product.eventuallyTainted();
    const annotations = { 'archaware.dev/architectures': 'x86' };
    await product.cluster.createPod({
      name: 'p',
      images: [product.image('app', ['arm64'])],
      metadata: { annotations },
    });
    await product.eventuallyTold('ConfigurationRejected', /archaware\.dev\/architectures: got "x86".*amd64, or 386/);
    await product.eventuallyTolerates('p', 'arm64');
  });
});
