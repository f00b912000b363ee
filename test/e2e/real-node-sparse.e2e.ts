import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { request } from 'undici';
import { nodeFiles } from '../../hack/cluster/node-config.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { createHostsDirectory } from '../../src/oci/endpoints/hosts-directory.ts';
import { createRoutes } from '../../src/oci/endpoints/mirrors.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { type Content, descriptorOf, programImage } from '../../testimg/build.ts';
import { type Harness, startResolver } from '../oci/server.ts';
import { pod } from '../support/workloads.ts';
import {
  eventuallyPulled,
  indexOf,
  isCounted,
  needsRealNode,
  pushIndexes,
  startNodeWorld,
} from './support/real-node.ts';
import type { LiveWorld } from './support/world.ts';

const NAMESPACE = 'sparse';
const REPOSITORY = 'app';
const REFUSED = /could not fetch content descriptor|not found/;

/** The registry in the image's name: one whose mirror is asked first, and one whose mirror is asked alone. */
type Name = 'first.test' | 'alone.test';
/** Who has the manifest of the node's architecture. */
type Holder = 'mirror' | 'source';

type Row = { readonly registry: Name; readonly holder: Holder; readonly isNested: boolean; readonly isPulled: boolean };

const ROWS: readonly Row[] = [false, true].flatMap((isNested) => [
  { registry: 'first.test', holder: 'mirror', isNested, isPulled: true },
  { registry: 'first.test', holder: 'source', isNested, isPulled: true },
  { registry: 'alone.test', holder: 'mirror', isNested, isPulled: true },
  { registry: 'alone.test', holder: 'source', isNested, isPulled: false },
]);

const nameOf = ({ registry, holder, isNested }: Row): string =>
  `${registry.replace('.test', '')}-${holder}${isNested ? '-nested' : ''}`;

describe('what containerd pulls through a mirror that lacks platforms, on a real node', function () {
  this.timeout(240_000);
  let world: LiveWorld;
  let mirror: Registry;
  let harness: Harness;
  let own: 'amd64' | 'arm64';
  let pulled: ReadonlyMap<string, { readonly isPulled: boolean; readonly message: string }>;
  before(async function () {
    needsRealNode(this);
    const started = await startNodeWorld();
    ({ world } = started);
    const [{ node }, { registry: source }] = [started, world];
    own = node.architecture;
    const images = await imagesOf(own);
    await pushIndexes(source, images);
    mirror = await startRegistry({ contentsOf: source, node, directory: join(node.directory, 'mirror') });
    for (const { row, digest } of images) {
      if (row.holder !== 'mirror') await remove(mirror, digest);
    }

    const directory = nodeFiles(node.directory).registries;
    const ours = join(mirror.directory, 'certs.d');
    await writeHosts(directory, source.nodeHost ?? '', mirror.nodeHost ?? '');
    await writeHosts(ours, source.host, mirror.host);
    const hosts = createHostsDirectory(ours, ({ problem }) => expect.fail(problem));
    expect(await hosts.reload()).to.deep.equal([]);
    const insecure = [source.host, mirror.host];
    const { endpointsOf } = createRoutes({ mirrors: {}, insecure, sparse: [mirror.host], hosts: hosts.hosts });
    harness = startResolver(insecure, { endpointsOf });

    await world.namespace(NAMESPACE);
    const spec = { nodeName: node.name, restartPolicy: 'Never' };
    await world.create(
      ...ROWS.map((row) =>
        pod(NAMESPACE, nameOf(row), { images: [`${row.registry}/${REPOSITORY}:${nameOf(row)}`], spec }),
      ),
    );
    pulled = await eventuallyPulled(world, NAMESPACE, ROWS.length, REFUSED);
  });
  after(async () => {
    harness?.stop();
    await mirror?.remove();
    await world?.stop();
  });

  it('is what archaware counts', async () => {
    const expected: Record<string, object> = {};
    const found: Record<string, object> = {};
    for (const row of ROWS) {
      const name = nameOf(row);
      expected[name] = { isPulled: row.isPulled, isCounted: row.isPulled };
      found[name] = { isPulled: pulled.get(name)?.isPulled, isCounted: await isFound(row) };
    }
    expect(found).to.deep.equal(expected);
  });

  const isFound = (row: Row) =>
    isCounted(harness, `${row.registry}/${REPOSITORY}:${nameOf(row)}`, own).catch((error: unknown) => {
      if (error instanceof ImageError && error.code === 'not-found') return false;
      throw error;
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

/** Returns an index for each row, with an image for the node and one for another architecture, and the digest of the first. */
async function imagesOf(own: 'amd64' | 'arm64') {
  const other = own === 'amd64' ? 'arm64' : 'amd64';
  const program = await readFile(join(binaries(), 'node', `pod-${own}`));
  return ROWS.map((row) => {
    // containerd keeps images by their config, so each row has images of its own.
    const unique = Buffer.concat([program, Buffer.from(nameOf(row))]);
    const [mine, others] = [own, other].map((architecture) => programImage({ os: 'linux', architecture }, unique));
    if (mine === undefined || others === undefined) throw new Error('two images are made');
    const entry = (root: Content, architecture: string) => ({
      ...descriptorOf(root),
      platform: { os: 'linux', architecture },
    });
    const inner = indexOf([entry(mine.root, own)]);
    const root = indexOf([entry(row.isNested ? inner : mine.root, own), entry(others.root, other)]);
    const manifests = [...mine.manifests, ...others.manifests, ...(row.isNested ? [inner] : []), root];
    const image = { root, manifests, blobs: [...mine.blobs, ...others.blobs] };
    return { row, tag: nameOf(row), image, digest: mine.root.digest };
  });
}
