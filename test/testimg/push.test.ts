import { assert } from 'chai';
import { request } from 'undici';
import { digestOf, type ImageFixture, MEDIA_TYPES } from '../../testimg/build.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { type PushResult, pushFixtures } from '../../testimg/push.ts';
import { startTestRegistry, type TestRegistry, type TestRegistryOptions } from '../simulator/registry/registry.ts';

const ACCEPT = [MEDIA_TYPES.dockerManifest, MEDIA_TYPES.dockerList, MEDIA_TYPES.ociManifest, MEDIA_TYPES.ociIndex].join(
  ', ',
);
const REPOSITORY = 'namespace/archaware-testimg';
const users = { robot: 's3cret:with colon' };
const robot = { username: 'robot', password: 's3cret:with colon' };
const HEADERS = {
  accept: ACCEPT,
  authorization: `Basic ${Buffer.from('robot:s3cret:with colon').toString('base64')}`,
};

async function readBack(registry: TestRegistry, tag: string, fixture: ImageFixture): Promise<void> {
  const base = `http://${registry.host}/v2/${REPOSITORY}`;
  const root = await request(`${base}/manifests/${tag}`, { headers: HEADERS });
  const bytes = Buffer.from(await root.body.arrayBuffer());
  assert.equal(root.statusCode, 200);
  assert.equal(root.headers['content-type'], fixture.root.mediaType);
  assert.equal(root.headers['docker-content-digest'], fixture.root.digest);
  assert.equal(digestOf(bytes), fixture.root.digest);
  for (const [kind, contents] of [
    ['manifests', fixture.manifests],
    ['blobs', fixture.blobs],
  ] as const) {
    for (const { digest } of contents) {
      const { body, statusCode } = await request(`${base}/${kind}/${digest}`, { headers: HEADERS });
      assert.equal(statusCode, 200);
      assert.equal(digestOf(Buffer.from(await body.arrayBuffer())), digest);
    }
  }
}

describe('pushing fixtures', () => {
  let registry: TestRegistry | undefined;
  afterEach(() => registry?.stop());

  async function start(options: TestRegistryOptions = {}): Promise<TestRegistry> {
    registry = await startTestRegistry(options);
    return registry;
  }

  function push(to: TestRegistry, credentials?: typeof robot, onTag = () => {}): Promise<PushResult> {
    const target = { registry: to.host, repository: REPOSITORY, insecure: true, onTag };
    return pushFixtures(credentials ? { ...target, credentials } : target);
  }

  it('stores every fixture, byte for byte, says why it skips what a registry refuses, and uploads nothing twice', async () => {
    const to = await start({ auth: 'basic', users });
    const { pushed, skipped } = await push(to, robot);
    assert.sameMembers(to.tags(REPOSITORY), pushed);
    assert.sameMembers(
      skipped.map(({ tag }) => tag),
      ['sparse', 'schema1', 'ambiguous'],
    );
    assert.equal(pushed.length + skipped.length, FIXTURES.length);
    assert.match(skipped.find(({ tag }) => tag === 'schema1')?.reason ?? '', /400 MANIFEST_INVALID/);
    for (const { tag, build } of FIXTURES.filter((fixture) => pushed.includes(fixture.tag))) {
      await readBack(to, tag, build());
    }
    to.clearRequests();
    await push(to, robot);
    assert.isEmpty(to.requests().filter(({ path }) => path.includes('/uploads/')));
  });

  it('authenticates with a token, and with a new one when that is no longer good', async () => {
    const to = await start({ auth: 'bearer', users });
    await push(to, robot, () => to.revokeTokens());
    assert.include(to.tags(REPOSITORY), 'multi');
    const tokens = to.requests().filter(({ path }) => path === '/token');
    assert.isAbove(tokens.length, 2);
    assert.isTrue(tokens.every(({ authorization }) => authorization === 'basic'));
  });

  it('fails when the password is wrong, without showing it', async () => {
    const to = await start({ auth: 'bearer', users });
    const error = await push(to, { ...robot, password: 'wr0ng' }).catch((reason: unknown) => String(reason));
    assert.match(String(error), /not accepted/);
    assert.notInclude(String(error), 'wr0ng');
    assert.isEmpty(to.tags(REPOSITORY));
  });

  it('fails when an image that no registry may refuse is refused', async () => {
    const to = await start();
    to.inject({ kind: 'status', status: 400 }, { method: 'PUT', path: /manifests\/multi$/ });
    const error = await push(to).catch((reason: unknown) => String(reason));
    assert.match(String(error), /archaware-testimg:multi.*400/);
  });
});
