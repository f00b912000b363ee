/**
 * Images made from nothing: the same bytes on every machine and every day, so that a tag that was pushed once needs no
 * second push and a digest can be compared with one of last year.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const MEDIA_TYPES = {
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  ociLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  ociTar: 'application/vnd.oci.image.layer.v1.tar',
  ociEmpty: 'application/vnd.oci.empty.v1+json',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
  dockerLayer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  dockerSchema1: 'application/vnd.docker.distribution.manifest.v1+prettyjws',
} as const;

/** A platform as it is written into an index or a config blob: not normalised, on purpose. */
export type FixturePlatform = {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
  readonly 'os.version'?: string;
};

/** What points at a blob or manifest (OCI image-spec, descriptor.md). `size` is in bytes. */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: FixturePlatform;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Bytes under their digest. */
export type Content = { readonly mediaType: string; readonly digest: string; readonly bytes: Buffer };

/** An image or index with all below it. `manifests` has children before parents; what a tag names is its last entry. */
export type ImageFixture = {
  readonly root: Content;
  readonly manifests: readonly Content[];
  readonly blobs: readonly Content[];
};

/** `sha256:` and the hexadecimal digest of the bytes. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Bytes with their digest. */
export function content(mediaType: string, bytes: Buffer): Content {
  return { mediaType, digest: digestOf(bytes), bytes };
}

/** A value as JSON, with its digest. */
export function json(mediaType: string, value: unknown): Content {
  return content(mediaType, Buffer.from(JSON.stringify(value)));
}

/** The descriptor of a content, with what an index's entry adds to it. */
export function descriptorOf(of: Content, extra: Pick<Descriptor, 'platform' | 'annotations'> = {}): Descriptor {
  return { mediaType: of.mediaType, digest: of.digest, size: of.bytes.length, ...extra };
}

/** A ustar archive with one empty file, `nothing`, of the year 1970. */
const tarOfNothing = () => tarOf('nothing', Buffer.alloc(0), '0000444');

/** A ustar archive with one file of the year 1970. */
function tarOf(name: string, bytes: Buffer, mode: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(`${mode}\0`, 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('00000000000\0', 136);
  header.write(' '.repeat(8), 148); // the checksum counts its own field as spaces
  header.write('0', 156);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512), Buffer.alloc(1024)]);
}

/** gzip with one stored block: zlib's own output differs between versions and names the operating system. */
export function gzipStored(bytes: Buffer): Buffer {
  const out = Buffer.alloc(10 + 5 + bytes.length + 8);
  out.set([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1]);
  out.writeUInt16LE(bytes.length, 11);
  out.writeUInt16LE(~bytes.length & 0xffff, 13);
  bytes.copy(out, 15);
  out.writeUInt32LE(crc32(bytes), 15 + bytes.length);
  out.writeUInt32LE(bytes.length, 19 + bytes.length);
  return out;
}

type Flavour = 'oci' | 'docker';

/** How {@link image} departs from a plain OCI image. */
export type ImageOptions = {
  readonly flavour?: Flavour;
  /** `false` leaves the body's own `mediaType` field away, as OCI 1.0 writers did. */
  readonly typed?: boolean;
  /** Any text: two images that differ in nothing else have other digests (an index's, or an image's and its config's). */
  readonly note?: string;
};

/** A single-platform image; `{}` gives a config blob that names no platform. */
export function image(platform: FixturePlatform | Record<string, never>, options: ImageOptions = {}): ImageFixture {
  const docker = options.flavour === 'docker';
  const tar = tarOfNothing();
  const layer = content(docker ? MEDIA_TYPES.dockerLayer : MEDIA_TYPES.ociLayer, gzipStored(tar));
  const config = json(docker ? MEDIA_TYPES.dockerConfig : MEDIA_TYPES.ociConfig, {
    ...platform,
    config: options.note === undefined ? {} : { Labels: { note: options.note } },
    rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'archaware-testimg' }],
  });
  const mediaType = docker ? MEDIA_TYPES.dockerManifest : MEDIA_TYPES.ociManifest;
  const root = json(mediaType, {
    schemaVersion: 2,
    ...(options.typed === false ? {} : { mediaType }),
    config: descriptorOf(config),
    layers: [descriptorOf(layer)],
  });
  return { root, manifests: [root], blobs: [config, layer] };
}

/** A single-platform image that runs an executable which needs no other file. */
export function programImage(platform: FixturePlatform, program: Buffer): ImageFixture {
  const layer = content(MEDIA_TYPES.ociTar, tarOf('program', program, '0000755'));
  const config = json(MEDIA_TYPES.ociConfig, {
    ...platform,
    config: { Entrypoint: ['/program'] },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  });
  const mediaType = MEDIA_TYPES.ociManifest;
  const parts = { config: descriptorOf(config), layers: [descriptorOf(layer)] };
  const root = json(mediaType, { schemaVersion: 2, mediaType, ...parts });
  return { root, manifests: [root], blobs: [config, layer] };
}

/** A manifest whose config blob is not that of an image. */
export function artifact(options: { configType: string; layerType: string; artifactType?: string }): ImageFixture {
  const config = json(options.configType, {});
  const layer = content(options.layerType, gzipStored(tarOfNothing()));
  const root = json(MEDIA_TYPES.ociManifest, {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.ociManifest,
    ...(options.artifactType === undefined ? {} : { artifactType: options.artifactType }),
    config: descriptorOf(config),
    layers: [descriptorOf(layer)],
  });
  return { root, manifests: [root], blobs: [config, layer] };
}

/** One entry of an index: what it points at, and what the entry says about it. */
export type IndexEntry = {
  readonly of: ImageFixture;
  readonly platform?: FixturePlatform;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Named by the index, stored nowhere. */
  readonly absent?: boolean;
};

/** How {@link index} departs from a plain OCI index; `extra` fields are added to its body. */
export type IndexOptions = ImageOptions & { readonly extra?: Readonly<Record<string, unknown>> };

/** An index (or Docker manifest list) over its entries. */
export function index(entries: readonly IndexEntry[], options: IndexOptions = {}): ImageFixture {
  const mediaType = options.flavour === 'docker' ? MEDIA_TYPES.dockerList : MEDIA_TYPES.ociIndex;
  const root = json(mediaType, {
    schemaVersion: 2,
    ...(options.typed === false ? {} : { mediaType }),
    manifests: entries.map(({ of, platform, annotations }) =>
      descriptorOf(of.root, { ...(platform && { platform }), ...(annotations && { annotations }) }),
    ),
    ...(options.note === undefined ? {} : { annotations: { note: options.note } }),
    ...options.extra,
  });
  const stored = entries.filter((entry) => entry.absent !== true).map((entry) => entry.of);
  return {
    root,
    manifests: unique([...stored.flatMap((of) => of.manifests), root]),
    blobs: unique(stored.flatMap((of) => of.blobs)),
  };
}

/** BuildKit's provenance: an entry of platform unknown/unknown that says of which image it speaks. */
export function attestation(of: ImageFixture): IndexEntry {
  const platform = { os: 'unknown', architecture: 'unknown' };
  const statement = json('application/vnd.in-toto+json', { subject: [{ name: 'nothing', digest: of.root.digest }] });
  const config = json(MEDIA_TYPES.ociConfig, {
    ...platform,
    config: {},
    rootfs: { type: 'layers', diff_ids: [statement.digest] },
  });
  const root = json(MEDIA_TYPES.ociManifest, {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.ociManifest,
    config: descriptorOf(config),
    layers: [descriptorOf(statement)],
  });
  return {
    of: { root, manifests: [root], blobs: [config, statement] },
    platform,
    annotations: {
      'vnd.docker.reference.digest': of.root.digest,
      'vnd.docker.reference.type': 'attestation-manifest',
    },
  };
}

/** One image for each platform, and an index that names them. */
export function multiPlatform(platforms: readonly FixturePlatform[], options: IndexOptions = {}): ImageFixture {
  return index(
    platforms.map((platform) => ({ of: image(platform, { flavour: options.flavour ?? 'oci' }), platform })),
    options,
  );
}

/** A signed schema 1 manifest: the right form, with a signature that nobody can verify. */
export function schema1(name: string, tag: string): ImageFixture {
  const layer = content(MEDIA_TYPES.dockerLayer, gzipStored(tarOfNothing()));
  const root = json(MEDIA_TYPES.dockerSchema1, {
    schemaVersion: 1,
    name,
    tag,
    architecture: 'amd64',
    fsLayers: [{ blobSum: layer.digest }],
    history: [{ v1Compatibility: JSON.stringify({ id: '0'.repeat(64), architecture: 'amd64', os: 'linux' }) }],
    signatures: [{ header: { alg: 'none' }, signature: '', protected: '' }],
  });
  return { root, manifests: [root], blobs: [layer] };
}

function unique(contents: readonly Content[]): Content[] {
  return [...new Map(contents.map((one) => [one.digest, one])).values()];
}
