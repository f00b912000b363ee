import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { binaries } from '../../hack/cluster/spawn.ts';
import { type Content, descriptorOf, type ImageFixture, programImage } from '../../testimg/build.ts';
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

const NAMESPACE = 'pulls';
const REFUSED =
  /no match for platform|unexpected media type|could not fetch content descriptor|content digest \S+ not found/;

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

type Parts = {
  readonly own: string;
  readonly other: string;
  /** An entry for the image of the node's architecture, or of the other one. */
  readonly image: (architecture: string, more?: object) => Entry;
  /** The same with the platform that it has. */
  readonly named: (architecture: string, more?: object) => Entry;
  readonly index: (entries: readonly Entry[]) => Entry;
};

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

describe('what containerd pulls on a real node', function () {
  this.timeout(240_000);
  let world: LiveWorld;
  let harness: Harness;
  let own: 'amd64' | 'arm64';
  let statuses: ReadonlyMap<string, { readonly isPulled: boolean; readonly message: string }>;

  before(async function () {
    needsRealNode(this);
    const started = await startNodeWorld();
    ({ world } = started);
    const [{ node }, { registry }] = [started, world];
    own = node.architecture;
    harness = startResolver([registry.host]);
    await pushIndexes(registry, await imagesOf(own));
    await world.namespace(NAMESPACE);
    const spec = { nodeName: node.name, restartPolicy: 'Never' };
    await world.create(
      ...rows(own).map(({ name }) => pod(NAMESPACE, name, { images: [`${registry.nodeHost}/app:${name}`], spec })),
    );
    statuses = await eventuallyPulled(world, NAMESPACE, rows(own).length, REFUSED);
  });
  after(async () => {
    harness?.stop();
    await world?.stop();
  });

  it('is what archaware counts of an index, or more', async () => {
    const expected = new Map(rows(own).map(({ name, isPulled, isCounted }) => [name, { isPulled, isCounted }]));
    const found = new Map<string, { isPulled: boolean; isCounted: boolean }>();
    for (const [name, { isPulled }] of statuses) {
      found.set(name, { isPulled, isCounted: await isCounted(harness, `${world.registry.host}/app:${name}`, own) });
    }
    expect(Object.fromEntries(found)).to.deep.equal(Object.fromEntries(expected));
  });
});

/** Returns an index for each row, with its name as the tag. */
async function imagesOf(own: 'amd64' | 'arm64'): Promise<{ tag: string; image: ImageFixture }[]> {
  const other = own === 'amd64' ? 'arm64' : 'amd64';
  const program = await readFile(join(binaries(), 'node', `pod-${own}`));
  return rows(own).map(({ name, entries, isAlone }) => {
    // containerd keeps images by their config, so each row has images of its own. What follows a program does not matter to Linux.
    const unique = Buffer.concat([program, Buffer.from(name)]);
    const blobs: Content[] = [];
    const manifests: Content[] = [];
    const image: Parts['image'] = (text, more = {}) => {
      const [architecture = '', variant] = text.trim().split('/');
      const made = programImage({ os: 'linux', architecture, ...(variant && { variant }) }, unique);
      blobs.push(...made.blobs);
      manifests.push(...made.manifests);
      return { ...descriptorOf(made.root), ...more };
    };
    const named: Parts['named'] = (text, more = {}) => {
      const [architecture, variant] = text.split('/');
      return image(text, { platform: { os: 'linux', architecture, variant }, ...more });
    };
    const index: Parts['index'] = (list) => {
      const made = indexOf(list);
      manifests.push(made);
      return descriptorOf(made);
    };
    const list = entries({ own, other, image, named, index });
    index(isAlone ? list : [...list, named(other)]);
    const root = manifests.at(-1) ?? expect.fail(name);
    return { tag: name, image: { root, manifests, blobs } };
  });
}
