import { expect } from 'chai';
import { createImageCache, EVERYBODY, type ImageCache } from '../../src/oci/cache/cache.ts';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { type Harness, IMAGE, indexOf, putImage, type ScriptedServer, startResolver, startServer } from './server.ts';

const CONTAINER: Access = { namespace: 'default', pullSecrets: [], always: false };
const VOLUME: Access = { ...CONTAINER, isVolume: true };
const never = new AbortController().signal;
const platforms = [{ os: 'linux', architecture: 'arm64' }];

describe('whether an image is an index', () => {
  let server: ScriptedServer;
  let harness: Harness;
  let cache: ImageCache;
  beforeEach(async () => {
    server = await startServer();
    cache = createImageCache(100);
    harness = startResolver([server.host], { cache });
  });
  afterEach(async () => {
    harness.stop();
    await server.stop();
  });
  const image = (rest: string): string => `${server.host}/${rest}`;
  const resolve = (rest: string, access = VOLUME) => harness.resolver.resolve(image(rest), access, never);

  it('is known of an index, even one with a single entry', async () => {
    server.put('app', 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
    expect(await resolve('app:v1')).to.deep.include({ platforms, isIndex: true });
    expect(harness.resolver.known(image('app:v1'), VOLUME)).to.deep.equal({ platforms, isIndex: true });
  });

  it('is known of a single manifest', async () => {
    putImage(server, 'app', 'arm64', 'v1');
    expect(await resolve('app:v1')).to.deep.include({ platforms, isIndex: false });
    expect(harness.resolver.known(image('app:v1'), VOLUME)).to.deep.equal({ platforms, isIndex: false });
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
      const failure = harness.resolver.failure(image('data:v1'), VOLUME);
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

  describe('is unknown for an entry of an earlier version', () => {
    /** A tag and its digest, as the file of an earlier version has them. */
    const remembered = () => {
      const digest = server.put('old', 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
      const found = { platforms, skipped: [] };
      cache.restore({
        digests: [[digest, found]],
        tags: [[image('old:v1'), { digest, found, checkedAt: 1_000_000, source: server.host }]],
      });
      return digest;
    };

    it('which answers for containers without a request', async () => {
      const digest = remembered();
      expect(harness.resolver.known(image('old:v1'), CONTAINER)).to.deep.equal({ platforms });
      await resolve('old:v1', CONTAINER);
      await resolve(`old@${digest}`, CONTAINER);
      expect(server.asked).to.deep.equal([]);
    });

    for (const name of ['old:v1', 'old@']) {
      it(`and is looked up once if ${name === 'old:v1' ? 'a tag' : 'a digest'} is used as a volume, with one GET`, async () => {
        const digest = remembered();
        const wanted = name === 'old:v1' ? name : `${name}${digest}`;
        expect(harness.resolver.known(image(wanted), VOLUME)).to.equal(undefined);
        expect(await resolve(wanted)).to.deep.include({ platforms, isIndex: true });
        expect(server.asked.splice(0)).to.deep.equal([`GET /v2/old/manifests/${wanted.split(/[:@](.*)/)[1]}`]);
        expect(harness.resolver.known(image(wanted), VOLUME)).to.deep.equal({ platforms, isIndex: true });
        harness.resolver.request(image(wanted), VOLUME);
        expect(harness.resolver.pending()).to.equal(0);
        expect(cache.digest(digest)).to.deep.include({ isIndex: true });
      });
    }

    it('and does not answer for a volume while the registry is away', async () => {
      remembered();
      server.on(`/v2/old/manifests/v1`, (_request, response) => void response.writeHead(503).end());
      await resolve('old:v1').catch(() => undefined);
      expect(harness.resolver.known(image('old:v1'), VOLUME)).to.equal(undefined);
      expect(harness.resolver.failure(image('old:v1'), VOLUME)).to.not.equal(undefined);
      expect(harness.resolver.known(image('old:v1'), CONTAINER)).to.deep.equal({ platforms });
      expect(cache.tag(image('old:v1'), EVERYBODY)?.found).to.deep.equal({ platforms, skipped: [] });
    });
  });
});
