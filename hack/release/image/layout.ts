/**
 * An OCI image layout on disk (image-spec, image-layout.md), and the annotations that builders cannot write: buildah 1.28 has no way to
 * annotate an index.
 */
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** `sha256:` and 64 hexadecimal digits. */
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const annotations = z.record(z.string(), z.string());
const descriptor = z.looseObject({
  mediaType: z.string(),
  digest,
  size: z.number().int().nonnegative(),
  annotations: annotations.optional(),
});
const platformDescriptor = descriptor.extend({
  platform: z.looseObject({ os: z.string(), architecture: z.string(), variant: z.string().optional() }),
});
const indexType = 'application/vnd.oci.image.index.v1+json';
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const entry = z.looseObject({ schemaVersion: z.literal(2), manifests: z.array(descriptor) });
const index = z.looseObject({
  schemaVersion: z.literal(2),
  mediaType: z.literal(indexType),
  manifests: z.array(platformDescriptor).nonempty(),
  annotations: annotations.optional(),
});
const manifest = z.looseObject({
  schemaVersion: z.literal(2),
  mediaType: z.literal(manifestType),
  config: descriptor,
  layers: z.array(descriptor),
  annotations: annotations.optional(),
});

export type Annotations = Readonly<Record<string, string>>;
export type Manifest = z.infer<typeof manifest>;
type Index = z.infer<typeof index>;

/** One platform of an index: its manifest, by digest. */
export type PlatformManifest = {
  readonly os: string;
  readonly architecture: string;
  readonly digest: string;
};

/** An image index in an OCI image layout. */
export type Layout = {
  readonly directory: string;
  /** The digest of the index. */
  readonly digest: string;
  /** In the order of the index. */
  readonly platforms: readonly PlatformManifest[];
};

/** Bytes under their digest. */
type Blob = { readonly digest: string; readonly bytes: Buffer };

/** Reads a layout whose index.json has one entry, an image index. Throws if it is something else. */
export async function readLayout(directory: string): Promise<Layout> {
  const { found, digest: at } = await readIndex(directory);
  return { directory, digest: at, platforms: platformsOf(found) };
}

/**
 * Annotates the index and each platform's manifest in a layout, and removes the manifests that this replaces. The same layout and
 * annotations give the same digests. Throws if the layout has something else than one image index.
 */
export async function annotateLayout(directory: string, added: Annotations): Promise<Layout> {
  const { found, digest: before } = await readIndex(directory);
  const manifests = await Promise.all(found.manifests.map(({ digest: at }) => readManifest(directory, at)));
  const { top, all } = annotated(found, manifests, added);
  await Promise.all(all.map(({ digest: at, bytes }) => writeFile(blobPath(directory, at), bytes)));
  const entries = {
    schemaVersion: 2,
    manifests: [{ mediaType: indexType, digest: top.digest, size: top.bytes.length }],
  };
  await writeFile(join(directory, 'index.json'), JSON.stringify(entries));
  const kept = new Set(all.map(({ digest: at }) => at));
  const replaced = [before, ...found.manifests.map(({ digest: at }) => at)].filter((at) => !kept.has(at));
  await Promise.all([...new Set(replaced)].map((at) => rm(blobPath(directory, at))));
  return readLayout(directory);
}

/** Returns the index and the manifests with annotations; the descriptors in the index follow. What they have themselves stays. */
export function annotated(
  found: Index,
  manifests: readonly Manifest[],
  added: Annotations,
): { readonly top: Blob; readonly all: readonly Blob[] } {
  const blobs = manifests.map((one) => blobOf({ ...one, annotations: sorted({ ...added, ...one.annotations }) }));
  const descriptors = found.manifests.map((one, position) => {
    const blob = blobs[position];
    if (blob === undefined) throw new Error(`no manifest for ${one.platform.os}/${one.platform.architecture}`);
    return { ...one, digest: blob.digest, size: blob.bytes.length };
  });
  const top = blobOf({
    ...found,
    manifests: descriptors,
    annotations: sorted({ ...added, ...found.annotations }),
  });
  return { top, all: [...blobs, top] };
}

/** Reads a manifest of a layout. Throws if it is none, or if its bytes do not have this digest. */
export async function readManifest(directory: string, at: string): Promise<Manifest> {
  return manifest.parse(JSON.parse((await readBlob(directory, at)).toString()));
}

/** Reads a blob of a layout. Throws if its bytes do not have this digest. */
export async function readBlob(directory: string, at: string): Promise<Buffer> {
  const bytes = await readFile(blobPath(directory, at));
  const { digest: found } = blobFrom(bytes);
  if (found !== at) throw new Error(`${blobPath(directory, at)} has the digest ${found}`);
  return bytes;
}

async function readIndex(directory: string): Promise<{ readonly found: Index; readonly digest: string }> {
  const path = join(directory, 'index.json');
  const { manifests } = entry.parse(JSON.parse(await readFile(path, 'utf8')));
  const [only, ...others] = manifests;
  if (only === undefined || others.length > 0 || only.mediaType !== indexType) {
    const types = manifests.map(({ mediaType }) => mediaType).join(', ');
    throw new Error(`${path}: expected one entry, an ${indexType}, got ${types || 'none'}`);
  }
  return { found: index.parse(JSON.parse((await readBlob(directory, only.digest)).toString())), digest: only.digest };
}

function platformsOf({ manifests }: Index): PlatformManifest[] {
  return manifests.map(({ digest: at, platform: { os, architecture } }) => ({ os, architecture, digest: at }));
}

const blobOf = (value: unknown): Blob => blobFrom(Buffer.from(JSON.stringify(value)));

function blobFrom(bytes: Buffer): Blob {
  return { digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`, bytes };
}

/** In the order of their names: the order in which they were given does not change the digest. */
function sorted(given: Annotations): Record<string, string> {
  return Object.fromEntries(Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const blobPath = (directory: string, at: string): string => join(directory, 'blobs', at.replace(':', '/'));
