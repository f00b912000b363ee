import { type Product, startProduct } from '../support/product.ts';

// archaware-controller (2022) used no credentials: a pod with a private image never got a toleration.
describe('a private image is looked up with the pull secret of its pod', () => {
  let product: Product;
  beforeEach(async () => {
    product = await startProduct({ registry: { auth: 'bearer', users: { ann: 'secret' } } });
    product.registry.makePrivate('private');
  });
  afterEach(() => product.stop());

  it('gets tolerations for the platforms of the image', async () => {
    const image = product.image('private', ['arm64']);
    const auth = Buffer.from('ann:secret').toString('base64');
    const auths = JSON.stringify({ auths: { [product.registry.host]: { auth } } });
    await product.cluster.request('POST', '/api/v1/namespaces/default/secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(auths).toString('base64') },
    });
    await product.run();
    await product.cluster.createPod({ name: 'p', images: [image], spec: { imagePullSecrets: [{ name: 'pull' }] } });
    await product.eventuallyTolerates('p', 'arm64');
  });
});
