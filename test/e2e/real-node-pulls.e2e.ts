import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { request } from 'undici';
import { at } from '../../hack/cluster/json.ts';
import { nodeFiles } from '../../hack/cluster/node-config.ts';
import type { RealNode } from '../../hack/cluster/real-node.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { createHostsDirectory } from '../../src/oci/endpoints/hosts-directory.ts';
import { createRoutes } from '../../src/oci/endpoints/mirrors.ts';
import { ImageError } from '../../src/oci/errors.ts';
import {
  type Content,
  content,
  descriptorOf,
  type ImageFixture,
  MEDIA_TYPES,
  programImage,
} from '../../testimg/build.ts';
import { pushFixtures } from '../../testimg/push.ts';
import { ANYONE, type Harness, never, startResolver } from '../oci/server.ts';
import { nameOf } from '../support/objects.ts';
import { pod } from '../support/workloads.ts';
import { needsRealNode, otherArchitecture } from './support/real-node.ts';
import { worldForAll } from './support/world.ts';

const REPOSITORY = 'app';
const REFUSED =
  /no match for platform|unexpected media type|could not fetch content descriptor|content digest \S+ not found/;
const NOT_FOUND = /could not fetch content descriptor|not found/;

type Entry = Readonly<Record<string, unknown>>;

/** What an index has for the node. A usual entry for the other architecture is at its end, unless it is `alone`. */
type Row = {
  readonly name: string;
  readonly entries: (parts: Parts) => readonly Entry[];
  /** Whether containerd pulls it on the node. */
  readonly isPulled: boolean;
  /** Whether archaware counts the node's architecture. */
  readonly isCounted: boolean;
  readonly isAlone: boolean;
};

type Parts = Omit<ReturnType<typeof createParts>, 'built'> & { readonly other: string };

const row = (name: string, isPulled: boolean, isCounted: boolean, entries: Row['entries'], alone?: 'alone'): Row => ({
  name,
  isAlone: alone !== undefined,
  entries,
  isPulled,
  isCounted,
});

const level = (own: string, variant: string): string => `${own}/${variant}`;

/** The rows of the comparison of October 2026, where archaware counted all of them. */
const rows = (own: string): readonly Row[] => [
  row('usual', true, true, ({ named }) => [named(own)]),
  ...(own === 'amd64' ? ['v2', 'v3', 'v4'] : ['v9']).map((variant) =>
    row(`level-${variant}`, false, false, ({ named }) => [named(level(own, variant))]),
  ),
  row('first-without-platform', true, true, ({ image }) => [image(own), image('s390x')], 'alone'),
  row('second-without-platform', false, false, ({ image }) => [image('s390x'), image(own)]),
  // Known: containerd chooses and pulls it, and then fails to compute its size, for which it takes the entry of the other platform.
  row('without-platform-beside-another', false, true, ({ image }) => [image(own)]),
  // The same with an attestation as the other one.
  row('without-platform-beside-unknown', false, true, ({ image, named }) => [image(own), named('unknown')], 'alone'),
  row(
    'without-platform-beside-a-strange-type',
    true,
    true,
    ({ image, named, other }) => [image(own), named(other, { mediaType: 'application/vnd.acme+json' })],
    'alone',
  ),
  row('without-platform-alone', true, true, ({ image }) => [image(own)], 'alone'),
  row('lesser', false, false, ({ named }) => [named(own === 'amd64' ? '386' : 'arm/v7')]),
  row('lesser-without-platform', true, false, ({ image }) => [image(own === 'amd64' ? '386' : 'arm/v7')], 'alone'),
  row('nested-for-other', false, false, ({ index, named, other }) => [
    { ...index([named(own), named(other)]), platform: { os: 'linux', architecture: other } },
  ]),
  row('nested', true, true, ({ index, named }) => [
    { ...index([named(own)]), platform: { os: 'linux', architecture: own } },
  ]),
  row('two-nested', false, false, ({ index, named, other }) => [index([named(other)]), index([named(own)])]),
  row('features', false, false, ({ image }) => [
    image(own, { platform: { os: 'linux', architecture: own, 'os.features': ['erofs'] } }),
  ]),
  row('no-architecture', false, false, ({ image }) => [image(own, { platform: { os: 'linux' } })]),
  row('empty-platform', false, false, ({ image }) => [image(own, { platform: {} })]),
  row('no-os', true, false, ({ image }) => [image(own, { platform: { architecture: own } })]),
  row('blank', false, false, ({ named }) => [named(` ${own}`)]),
  row('x86', false, false, ({ named }) => [named('x86')]),
  row('i686', false, false, ({ named }) => [named('i686')]),
  row('no-type', false, false, ({ named }) => [named(own, { mediaType: undefined })]),
  row('artifact-type', true, true, ({ named }) => [named(own, { artifactType: 'application/x' })]),
  row('capitals-in-names', true, true, ({ image }) => {
    const { mediaType, digest, size } = image(own);
    return [{ MediaType: mediaType, Digest: digest, Size: size, Platform: { OS: 'linux', Architecture: own } }];
  }),
];

/** The registry in the image's name: one whose mirror is asked first, and one whose mirror is asked alone. */
type Name = 'first.test' | 'alone.test';
/** Who has the manifest of the node's architecture. */
type Sparse = { readonly registry: Name; readonly holder: 'mirror' | 'source'; readonly isNested: boolean };

const SPARSE: readonly Sparse[] = [false, true].flatMap((isNested) =>
  (['first.test', 'alone.test'] as const).flatMap((registry) =>
    (['mirror', 'source'] as const).map((holder) => ({ registry, holder, isNested })),
  ),
);
const titleOf = ({ registry, holder, isNested }: Sparse): string =>
  `${registry.replace('.test', '')}-${holder}${isNested ? '-nested' : ''}`;

describe('what containerd pulls on a real node', function () {
  this.timeout(240_000);
  const world = worldForAll({ cluster: { node: 'real' }, manifest: '', nodes: [] }, needsRealNode);
  let node: RealNode;
  let program: Buffer;
  let mirror: Registry | undefined;
  const harnesses: Harness[] = [];

  before(async () => {
    node = world.cluster.node ?? expect.fail('the cluster has no node');
    program = await readFile(join(binaries(), 'node', `pod-${node.architecture}`));
  });
  after(async () => {
    for (const harness of harnesses) harness.stop();
    await mirror?.remove();
  });

  /** Pushes images under their tags, of which the registry must refuse none. */
  async function push(images: ReadonlyMap<string, ImageFixture>): Promise<void> {
    const fixtures = [...images].map(([tag, image]) => ({ tag, build: () => image, refusable: 'an unusual index' }));
    const to = { registry: world.registry.host, repository: REPOSITORY, insecure: true };
    expect((await pushFixtures({ ...to, fixtures })).skipped, 'what the registry refuses').to.deep.equal([]);
  }

  /** Whether the kubelet has pulled each image of these pods, once it has, or has been refused; by the name of the pod. */
  async function pulled(namespace: string, images: ReadonlyMap<string, string>, refused: RegExp) {
    await world.namespace(namespace);
    const spec = { nodeName: node.name, restartPolicy: 'Never' };
    await world.create(...[...images].map(([name, image]) => pod(namespace, name, { images: [image], spec })));
    const found = new Map<string, boolean>();
    await world.eventually('the kubelet to pull, or to say why not', async () => {
      const waiting: string[] = [];
      for (const one of await world.list('Pod', namespace)) {
        const status = at(one, 'status', 'containerStatuses', 0);
        const isPulled = String(at(status, 'imageID') ?? '') !== '';
        const message = String(at(status, 'state', 'waiting', 'message') ?? '');
        if (isPulled || refused.test(message)) found.set(nameOf(one), isPulled);
        else if (!found.has(nameOf(one))) waiting.push(`${nameOf(one)}: ${message || 'no message'}`);
      }
      if (waiting.length > 0) throw new Error(waiting.join('\n'));
      return found.size === images.size;
    });
    return found;
  }

  /** Whether archaware counts the node's architecture of an image. */
  async function isCounted({ resolver }: Harness, image: string): Promise<boolean> {
    const { platforms } = await resolver.resolve(image, ANYONE, never);
    return platforms.some(({ architecture }) => architecture === node.architecture);
  }

  it('is what archaware counts of an index, or more', async () => {
    const { registry } = world;
    const harness = startResolver([registry.host]);
    harnesses.push(harness);
    const all = rows(node.architecture);
    await push(new Map(all.map((each) => [each.name, imageOf(each, program, node)])));
    const image = ({ name }: Row, host = registry.nodeHost ?? '') => `${host}/${REPOSITORY}:${name}`;
    const isPulled = await pulled('pulls', new Map(all.map((each) => [each.name, image(each)])), REFUSED);
    const found: Record<string, object> = {};
    for (const each of all) {
      const counted = await isCounted(harness, image(each, registry.host));
      found[each.name] = { isPulled: isPulled.get(each.name), isCounted: counted };
    }
    const expected = all.map(({ name, ...each }) => [name, { isPulled: each.isPulled, isCounted: each.isCounted }]);
    expect(found).to.deep.equal(Object.fromEntries(expected));
  });

  it('is what archaware counts through a mirror that lacks platforms', async () => {
    const source = world.registry;
    const other = otherArchitecture(node);
    const built = SPARSE.map((row) => {
      const { named, index, built } = createParts(program, titleOf(row));
      const mine = named(node.architecture);
      const platform = { os: 'linux', architecture: node.architecture };
      index([row.isNested ? { ...index([mine]), platform } : mine, named(other)]);
      return { row, image: built(), digest: String(mine.digest) };
    });
    await push(new Map(built.map(({ row, image }) => [titleOf(row), image])));
    mirror = await startRegistry({ contentsOf: source, node, directory: join(node.directory, 'mirror') });
    for (const { row, digest } of built) if (row.holder !== 'mirror') await remove(mirror, digest);

    const own = join(mirror.directory, 'certs.d');
    await writeHosts(nodeFiles(node.directory).registries, source.nodeHost ?? '', mirror.nodeHost ?? '');
    await writeHosts(own, source.host, mirror.host);
    const hosts = createHostsDirectory(own, ({ problem }) => expect.fail(problem));
    expect(await hosts.reload()).to.deep.equal([]);
    const insecure = [source.host, mirror.host];
    const { endpointsOf } = createRoutes({ mirrors: {}, insecure, sparse: [mirror.host], hosts: hosts.hosts });
    const harness = startResolver(insecure, { endpointsOf });
    harnesses.push(harness);

    const image = (row: Sparse) => `${row.registry}/${REPOSITORY}:${titleOf(row)}`;
    const isPulled = await pulled('sparse', new Map(SPARSE.map((row) => [titleOf(row), image(row)])), NOT_FOUND);
    for (const row of SPARSE) {
      const counted = await isCounted(harness, image(row)).catch((error: unknown) => {
        if (error instanceof ImageError && error.code === 'not-found') return false;
        throw error;
      });
      const expected = row.registry === 'first.test' || row.holder === 'mirror';
      expect([isPulled.get(titleOf(row)), counted], titleOf(row)).to.deep.equal([expected, expected]);
    }
  });
});

/** Deletes a manifest; the index that names it stays. */
async function remove({ url }: Registry, digest: string): Promise<void> {
  const { statusCode, body } = await request(`${url}/v2/${REPOSITORY}/manifests/${digest}`, { method: 'DELETE' });
  await body.dump();
  expect(statusCode).to.equal(202);
}

async function writeHosts(directory: string, source: string, mirror: string): Promise<void> {
  const servers: Readonly<Record<Name, string>> = { 'first.test': source, 'alone.test': mirror };
  for (const [name, server] of Object.entries(servers)) {
    await mkdir(join(directory, name), { recursive: true });
    const text = `server = "http://${server}"\n[host."http://${mirror}"]\ncapabilities = ["pull", "resolve"]\n`;
    await writeFile(join(directory, name, 'hosts.toml'), text);
  }
}

/** Makes images and indexes. containerd keeps images by their config, so each row has its own; what follows a program does not matter to Linux. */
function createParts(program: Buffer, row: string) {
  const unique = Buffer.concat([program, Buffer.from(row)]);
  const blobs: Content[] = [];
  const manifests: Content[] = [];
  /** An entry for an image of an architecture, as `arm/v7`. */
  const image = (text: string, more: object = {}): Entry => {
    const [architecture = '', variant] = text.trim().split('/');
    const made = programImage({ os: 'linux', architecture, ...(variant && { variant }) }, unique);
    blobs.push(...made.blobs);
    manifests.push(...made.manifests);
    return { ...descriptorOf(made.root), ...more };
  };
  /** The same with the platform that it has. */
  const named = (text: string, more: object = {}): Entry => {
    const [architecture, variant] = text.split('/');
    return image(text, { platform: { os: 'linux', architecture, variant }, ...more });
  };
  const index = (entries: readonly Entry[]): Entry => {
    const text = JSON.stringify({ schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests: entries });
    const made = content(MEDIA_TYPES.ociIndex, Buffer.from(text));
    manifests.push(made);
    return descriptorOf(made);
  };
  /** Everything that was made; the last index is the image. */
  const built = (): ImageFixture => ({ root: manifests.at(-1) ?? expect.fail(row), manifests, blobs });
  return { image, named, index, built };
}

/** Returns the index of a row. */
function imageOf({ name, entries, isAlone }: Row, program: Buffer, node: RealNode): ImageFixture {
  const { built, ...parts } = createParts(program, name);
  const other = otherArchitecture(node);
  const list = entries({ ...parts, other });
  parts.index(isAlone ? list : [...list, parts.named(other)]);
  return built();
}
