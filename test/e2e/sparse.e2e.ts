import { expect } from 'chai';
import { request } from 'undici';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Registry } from '../../hack/cluster/registry.ts';
import type { Front } from '../../hack/cluster/registry-front.ts';
import { FIXTURES, TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { ours } from '../support/objects.ts';
import { pod } from '../support/workloads.ts';
import { imageAt } from '../support/world.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

describe('mirrors that lack platforms, on the real control plane', () => {
  let world: LiveWorld;
  let places: Places;
  /** A registry that holds arm64 of nothing, and nothing of the index `docker-list`. */
  let partial: Registry;
  let mirror: Front;
  let pullThrough: Registry;
  /** Names of the world's registry, which has everything. */
  let first: Front;
  let alone: Front;
  let through: Front;
  let configuration: string;

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    partial = await places.registry({});
    for (const digest of [...digestsOf('multi', 'linux/arm64'), ...digestsOf('docker-list')])
      await remove(partial, digest);
    mirror = await places.front({ registry: partial });
    pullThrough = await places.registry({ mirrorOf: { url: world.registry.url } });
    [first, alone, through] = await Promise.all([places.front(), places.front(), places.front()]);
    for (const { host } of [first, alone, through]) world.allowInsecure(host);
    const to = (url: string, fallback: boolean) => ({ endpoints: [url], fallback, sparse: !fallback });
    configuration = await places.file('sparse.yaml', {
      registries: {
        insecure: [first, alone, through].map(({ host }) => host),
        mirrors: {
          [first.host]: to(mirror.url, true),
          [alone.host]: to(mirror.url, false),
          [through.host]: to(pullThrough.url, false),
        },
      },
    });
    await world.run(['--images.fallbackAfter', '1h', '--config', configuration]);
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });

  async function tolerates(name: string, host: string, architectures: readonly string[]): Promise<string> {
    const namespace = await world.namespace(name);
    await world.create(pod(namespace, 'multi', { images: [imageAt(host, 'multi')] }));
    await world.eventuallyTolerates(namespace, 'multi', ours(...architectures));
    return namespace;
  }
  const heads = ({ requests }: Front): string[] =>
    requests().flatMap(({ method, path }) => (method === 'HEAD' ? [path.replace(/[?].*/, '')] : []));

  it('lets pods run where the mirror has their image, and asks once for each platform', async () => {
    await tolerates('alone', alone.host, ['amd64']);
    const asked = heads(mirror);
    const expected = digestsOf('multi').map((digest) => `/v2/${TESTIMG_REPOSITORY}/manifests/${digest}`);
    expect([...asked].sort()).to.deep.equal([...expected].sort());
    await tolerates('alone-again', alone.host, ['amd64']);
    expect(heads(mirror)).to.deep.equal(asked);
    expect(alone.requests()).to.deep.equal([]);
  });

  it('believes a mirror with the registry behind it, and asks neither for its platforms', async () => {
    const before = heads(mirror);
    await tolerates('first', first.host, ['amd64', 'arm64']);
    expect(heads(mirror)).to.deep.equal(before);
    expect(first.requests()).to.deep.equal([]);
  });

  it('takes a pull-through cache for one that has everything', () =>
    tolerates('through', through.host, ['amd64', 'arm64']));

  it('says that a mirror has no platform of an image', async () => {
    const namespace = await world.namespace('nothing');
    await world.create(pod(namespace, 'docker-list', { images: [imageAt(alone.host, 'docker-list')] }));
    const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /not-found/);
    expect(note).to.include(`${mirror.host} has none of the platforms of the index (linux/`);
  });

  it('shows in inspect what is missing where', async () => {
    const [missing] = digestsOf('multi', 'linux/arm64');
    const { code, stdout, stderr } = await world.command([
      'inspect',
      '--output',
      'json',
      '--config',
      configuration,
      imageAt(alone.host, 'multi'),
    ]);
    expect(code, stderr).to.equal(0);
    const [found] = listAt({ results: JSON.parse(stdout) }, 'results');
    expect(listAt(found, 'platforms').map((each) => at(each, 'architecture'))).to.deep.equal(['amd64']);
    expect(listAt(found, 'skipped')).to.deep.equal([
      { digest: missing, reason: `not in ${mirror.host} (linux/arm64)` },
    ]);
  });
});

/** Returns the digests that the index of a fixture has for a platform, or for all. */
function digestsOf(tag: string, platform?: string): string[] {
  const root = FIXTURES.find((fixture) => fixture.tag === tag)?.build().root ?? expect.fail(tag);
  return listAt(JSON.parse(root.bytes.toString()), 'manifests').flatMap((entry) => {
    const named = `${String(at(entry, 'platform', 'os'))}/${String(at(entry, 'platform', 'architecture'))}`;
    return platform === undefined || named === platform ? [String(at(entry, 'digest'))] : [];
  });
}

/** Deletes a manifest; the index that names it stays. */
async function remove({ url }: Registry, digest: string): Promise<void> {
  const { statusCode, body } = await request(`${url}/v2/${TESTIMG_REPOSITORY}/manifests/${digest}`, {
    method: 'DELETE',
  });
  await body.dump();
  expect(statusCode).to.equal(202);
}
