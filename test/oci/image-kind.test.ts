import { expect } from 'chai';
import { ImageError } from '../../src/oci/errors.ts';
import {
  ANYONE,
  type Harness,
  IMAGE,
  indexOf,
  never,
  putImage,
  type ScriptedServer,
  startResolver,
  startServer,
} from './server.ts';

const platforms = [{ os: 'linux', architecture: 'arm64' }];

describe('whether an image is an index', () => {
  let server: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    server = await startServer();
    harness = startResolver([server.host]);
  });
  afterEach(async () => {
    harness.stop();
    await server.stop();
  });
  const image = (rest: string): string => `${server.host}/${rest}`;
  const resolve = (rest: string, access = ANYONE) => harness.resolver.resolve(image(rest), access, never);

  it('is known of an index, even one with a single entry', async () => {
    server.put('app', 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
    expect(await resolve('app:v1')).to.deep.include({ platforms, isIndex: true });
    expect(harness.known(image('app:v1'), ANYONE)).to.deep.equal({ platforms, isIndex: true });
  });

  it('is known of a single manifest', async () => {
    putImage(server, 'app', 'arm64', 'v1');
    expect(await resolve('app:v1')).to.deep.include({ platforms, isIndex: false });
    expect(harness.known(image('app:v1'), ANYONE)).to.deep.equal({ platforms, isIndex: false });
  });

  it('is known of a bundle, from the labels of its config, which is fetched anyway', async () => {
    putImage(server, 'app', 'arm64', 'v1', { 'operators.operatorframework.io.bundle.manifests.v1': 'manifests/' });
    expect(await resolve('app:v1')).to.deep.include({ platforms, isIndex: false, isBundle: true });
    const known = harness.known(image('app:v1'), ANYONE);
    expect(known).to.deep.include({ platforms, isIndex: false, isBundle: true });
    expect(harness.requests).to.deep.equal(['GET 200', 'GET 200']);
  });

  it('is asked of an index without its configs, so that a bundle that is an index counts as any other', async () => {
    server.put('app', 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
    expect(await resolve('app:v1')).not.to.have.property('isBundle');
    expect(harness.requests).to.deep.equal(['GET 200']);
  });

  const config = (body: unknown) => {
    const digest = server.put('data', 'blobs', body, { type: 'application/octet-stream' });
    return { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: 1 };
  };
  const empty = { mediaType: 'application/vnd.oci.empty.v1+json', digest: `sha256:${'a'.repeat(64)}`, size: 2 };
  const singles: readonly [what: string, manifest: () => object, expected: boolean][] = [
    ['an artifact', () => ({ artifactType: 'application/model', config: empty }), true],
    ['an image that names no platform', () => ({ config: config({}) }), true],
    ['an image for an unknown platform', () => ({ config: config({ os: 'unknown', architecture: 'x' }) }), true],
    ['an empty index', () => ({ manifests: [], config: undefined, layers: undefined }), false],
  ];
  for (const [what, manifest, expected] of singles) {
    it(`is known of ${what}, which has no platforms`, async () => {
      const body = { schemaVersion: 2, layers: [], ...manifest() };
      server.put('data', 'manifests', JSON.parse(JSON.stringify(body)), { tag: 'v1', type: 'x/y' });
      const error: unknown = await resolve('data:v1').catch((reason: unknown) => reason);
      expect(error instanceof ImageError && error.isSingleManifest).to.equal(expected);
      const failure = harness.failure(image('data:v1'), ANYONE);
      expect(failure?.error.isSingleManifest).to.equal(expected);
    });
  }

  it('is unknown for an index whose entry names no platform', async () => {
    const child = server.put(
      'data',
      'manifests',
      { schemaVersion: 2, mediaType: IMAGE, config: config({}), layers: [] },
      { type: IMAGE },
    );
    const entries = [{ mediaType: IMAGE, digest: child, size: 1 }];
    server.put('data', 'manifests', { ...indexOf(), manifests: entries }, { tag: 'v1' });
    const error: unknown = await resolve('data:v1').catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ImageError).and.to.have.property('isSingleManifest', false);
  });
});
