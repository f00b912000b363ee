import { fieldOf, isObject, type JsonObject, onlyFields, parseObject } from '../kit/json.ts';
import { normaliseArchitecture, type Platform } from '../kit/platform.ts';
import { printableAscii } from '../kit/printable.ts';
import { ImageError } from './errors.ts';
import { isDigest } from './reference.ts';

/**
 * The header that both HEAD and GET of a manifest must send: without the list types, a registry may answer with the
 * amd64 child of an index.
 */
export const MANIFEST_ACCEPT = [
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  '*/*',
].join(', ');

/** Bytes; the OCI distribution-spec asks registries to accept manifests of 4 MiB. */
export const MAX_MANIFEST = 4 * 1024 * 1024;
/** Bytes; the limit of containerd for a config blob. */
export const MAX_CONFIG = 8 * 1024 * 1024;
/** The most entries of an index and of those within it, together; real ones have about 20. */
const MAX_ENTRIES = 1000;
/** Go can build for about 60 platforms in all. Each may become a toleration of every pod with the image. */
const MAX_PLATFORMS = 100;

/** An entry of an index that says nothing about where the image runs, with the reason. */
export type Skipped = { readonly digest?: string; readonly reason: string };

/** What an entry of an index states as its platform, as it is written there. An empty text: the field is absent. */
export type StatedPlatform = {
  readonly os: string;
  readonly architecture: string;
  readonly variant: string;
  /** Whether it names features that the operating system must have (`os.features`). */
  readonly hasFeatures: boolean;
};

/** An entry of an index. selection.ts decides which of them count. */
export type IndexEntry = {
  /** Absent: the entry names no digest that can be verified. */
  readonly digest?: string;
  /** What it refers to, by its media type; `untyped`: it has none. */
  readonly kind: 'image' | 'index' | 'schema1' | 'untyped' | 'other';
  readonly mediaType: string;
  /** Whether it is an attestation of BuildKit, whatever its platform says. */
  readonly isAttestation: boolean;
  /** Whether its layers are compressed with zstd, as containers/image marks such entries. */
  readonly isZstd: boolean;
  /** Absent: the entry has no platform, not even an empty one. */
  readonly platform?: StatedPlatform;
};

/** A parsed index. */
export type Index = {
  readonly kind: 'index';
  /** Whether it says that it is a manifest list of Docker, in which each entry must have a platform. */
  readonly isDockerList: boolean;
  readonly entries: readonly IndexEntry[];
};

/** A parsed manifest. `config`: the digest of the image's config blob. */
export type Manifest = Index | { readonly kind: 'image'; readonly config: string };

const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const SIGNED_SCHEMA1 = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
const KIND: ReadonlyMap<string, 'index' | 'image' | 'schema1'> = new Map([
  ['application/vnd.oci.image.index.v1+json', 'index'],
  [DOCKER_LIST, 'index'],
  ['application/vnd.oci.image.manifest.v1+json', 'image'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'image'],
  ['application/vnd.docker.distribution.manifest.v1+json', 'schema1'],
  [SIGNED_SCHEMA1, 'schema1'],
  // Registries send this type for schema 1 to clients that did not ask for a type.
  ['text/plain', 'schema1'],
]);

const IMAGE_CONFIG = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
  // Its config names the platform (wasip1/wasm), and container runtimes pull it.
  'application/vnd.wasm.config.v0+json',
]);
/** Types that clients of 2016 pushed for real images (github.com/distribution/distribution/issues/1621). */
const LEGACY_CONFIG = new Set(['application/octet-stream', 'application/json', 'text/html', '']);

const fields = (...names: string[]): ReadonlySet<string> => new Set(names.map((name) => name.toLowerCase()));
const MANIFEST_FIELDS = fields(
  ...['schemaVersion', 'mediaType', 'artifactType', 'annotations'],
  ...['manifests', 'config', 'layers', 'fsLayers'],
);
const ENTRY_FIELDS = fields('mediaType', 'digest', 'size', 'artifactType', 'annotations', 'platform');
const PLATFORM_FIELDS = fields('os', 'architecture', 'variant', 'os.version', 'os.features');
const CONFIG_FIELDS = fields(...PLATFORM_FIELDS, 'config');

function refused(code: 'malformed' | 'unsupported' | 'too-large', problem: string): ImageError {
  return new ImageError(problem, { code });
}

function malformed(problem: string): ImageError {
  return refused('malformed', `the manifest ${problem}`);
}

/**
 * Parses a manifest's body by its structure. Its two media types must agree with the structure, because a body that two
 * readers understand differently is an attack (CVE-2021-41190).
 *
 * @param contentType the `Content-Type` header; parameters are ignored, and so is a type that is not a manifest's
 * @param before the number of entries of the indexes that led to this one
 * @throws ImageError `malformed`, `too-large`, or `unsupported` for schema 1 and for artifacts that are not images
 */
export function parseManifest(body: Uint8Array, contentType: string | undefined, before = 0): Manifest {
  if (body.byteLength > MAX_MANIFEST) throw refused('too-large', `the manifest is larger than ${MAX_MANIFEST} bytes`);
  const whole = parseObject(body);
  if (whole === undefined)
    throw malformed(`is not a JSON object (${printableAscii(mediaType(contentType) || 'no type', 60)})`);
  const manifest = onlyFields(whole, MANIFEST_FIELDS);
  const declared = [mediaType(contentType), mediaType(fieldOf(manifest, 'mediaType'))].map((type) => KIND.get(type));
  const structure = structureOf(manifest);
  if (structure === 'schema1' || (structure === undefined && declared.includes('schema1'))) throw schema1();
  if (structure === undefined) throw malformed('contains neither "manifests" nor "config" and "layers"');
  const contradiction = declared.find((kind) => kind !== undefined && kind !== 'schema1' && kind !== structure);
  if (contradiction !== undefined) throw malformed(`claims to be an ${contradiction} but is an ${structure}`);
  return structure === 'index' ? parseIndex(manifest, before) : parseImage(manifest);
}

function schema1(): ImageError {
  return refused('unsupported', 'the image is of Docker schema 1, which containerd no longer runs; push it again');
}

/**
 * Call for a body whose digest does not match.
 *
 * @throws ImageError `unsupported` if it is a signed manifest of schema 1, whose digest is computed differently
 */
export function refuseSchema1(body: Uint8Array, contentType: string | undefined): void {
  const manifest = body.byteLength > MAX_MANIFEST ? undefined : parseObject(body);
  const isSigned = manifest?.schemaVersion === 1 && Array.isArray(manifest.signatures);
  if (isSigned || mediaType(contentType) === SIGNED_SCHEMA1) throw schema1();
}

function structureOf(manifest: JsonObject): 'index' | 'image' | 'schema1' | undefined {
  const isIndex = Object.hasOwn(manifest, 'manifests');
  const isImage = Object.hasOwn(manifest, 'layers') || Object.hasOwn(manifest, 'config');
  if (isIndex && isImage) throw malformed('contains both "manifests" and "layers"');
  if (isIndex) return 'index';
  if (isImage) return 'image';
  return fieldOf(manifest, 'schemaVersion') === 1 || Object.hasOwn(manifest, 'fslayers') ? 'schema1' : undefined;
}

function parseImage(manifest: JsonObject): Manifest {
  const named = fieldOf(manifest, 'config');
  const digest = isObject(named) ? textOf(fieldOf(named, 'digest')) : '';
  if (!isObject(named) || !isDigest(digest)) throw malformed('names no valid config');
  const type = mediaType(fieldOf(named, 'mediaType'));
  const artifact = textOf(fieldOf(manifest, 'artifactType'));
  if (!IMAGE_CONFIG.has(type) && (artifact !== '' || !LEGACY_CONFIG.has(type))) {
    const problem = `this is not an image but an artifact of type "${printableAscii(artifact || type, 100)}"`;
    throw new ImageError(problem, { code: 'unsupported', isSingleManifest: true });
  }
  return { kind: 'image', config: digest };
}

function parseIndex(index: JsonObject, before: number): Manifest {
  const listed = fieldOf(index, 'manifests');
  if (!Array.isArray(listed)) throw malformed('has "manifests" that are not a list');
  const count = before + listed.length;
  if (count > MAX_ENTRIES) {
    const together = before === 0 ? '' : ' together with the indexes within it';
    throw refused('too-large', `the index has ${count} entries${together}; at most ${MAX_ENTRIES} are read`);
  }
  const entries = listed.map(parseEntry);
  const annotations = fieldOf(index, 'annotations');
  if (!areTexts(index, ['mediaType', 'artifactType']) || !isMapOfTexts(annotations)) throw wrongType();
  // Container runtimes read an invalid entry only if they choose it.
  const isBad = entries.length > 0 && entries.every(({ digest }) => digest === undefined);
  if (isBad) throw malformed('has no entry with a valid digest');
  return { kind: 'index', isDockerList: mediaType(fieldOf(index, 'mediaType')) === DOCKER_LIST, entries };
}

/** @throws ImageError `malformed` if a field has a type for which container runtimes refuse the whole index, whatever they choose. */
function parseEntry(value: unknown): IndexEntry {
  if (value !== null && !isObject(value)) throw wrongType();
  const entry = onlyFields(value ?? {}, ENTRY_FIELDS);
  const digest = textOf(fieldOf(entry, 'digest'));
  const annotations = fieldOf(entry, 'annotations');
  const size = fieldOf(entry, 'size') ?? 0;
  if (
    !areTexts(entry, ['mediaType', 'digest', 'artifactType']) ||
    !isMapOfTexts(annotations) ||
    !Number.isInteger(size)
  ) {
    throw wrongType();
  }
  const named = isObject(annotations) ? annotations : {};
  // containerd compares this type as it is written.
  const type = textOf(fieldOf(entry, 'mediaType'));
  const stated = fieldOf(entry, 'platform');
  const platform = isObject(stated) ? onlyFields(stated, PLATFORM_FIELDS) : stated;
  if (platform !== undefined && !isPlatform(platform)) throw wrongType();
  return {
    ...(isDigest(digest) && { digest }),
    kind: type === '' ? 'untyped' : (KIND.get(type) ?? 'other'),
    mediaType: type,
    isAttestation: named['vnd.docker.reference.type'] === 'attestation-manifest',
    isZstd: named['io.github.containers.compression.zstd'] === 'true',
    ...(platform === undefined ? {} : { platform: statedPlatform(platform) }),
  };
}

function wrongType(): ImageError {
  return malformed('is an index with a field of the wrong type, and containerd refuses such an index as a whole');
}

function isPlatform(value: unknown): value is JsonObject {
  if (!isObject(value) || !areTexts(value, ['os', 'architecture', 'variant', 'os.version'])) return false;
  const features = fieldOf(value, 'os.features') ?? [];
  return Array.isArray(features) && features.every((feature) => feature === null || typeof feature === 'string');
}

/** Whether these fields are texts, as far as they are there. */
function areTexts(object: JsonObject, names: readonly string[]): boolean {
  for (const name of names) if (!['string', 'undefined'].includes(typeof fieldOf(object, name))) return false;
  return true;
}

function isMapOfTexts(value: unknown): boolean {
  return (
    value === undefined ||
    (isObject(value) && Object.values(value).every((text) => text === null || typeof text === 'string'))
  );
}

function statedPlatform(platform: JsonObject): StatedPlatform {
  const features = fieldOf(platform, 'os.features');
  return {
    os: textOf(fieldOf(platform, 'os')),
    architecture: textOf(fieldOf(platform, 'architecture')),
    variant: textOf(fieldOf(platform, 'variant')),
    hasFeatures: Array.isArray(features) && features.length > 0,
  };
}

/** What a config blob says that matters for where its image runs. */
export type ImageConfig = {
  readonly platform: Platform;
  /** Whether its labels say that it is a bundle of the Operator Lifecycle Manager. Its author chooses the labels. */
  readonly isBundle?: true;
};

/** The labels that OLM requires of a bundle (operator-registry, docs/design/operator-bundle.md). */
const BUNDLE_LABELS = [
  'operators.operatorframework.io.bundle.manifests.v1',
  'operators.operatorframework.io.bundle.mediatype.v1',
];

/**
 * Returns what a config blob says (OCI image-spec, config.md). Without an `os` the platform is linux, as with Docker.
 *
 * @throws ImageError `malformed`, or `unsupported` if it names the platform `unknown`
 */
export function parseImageConfig(body: Uint8Array): ImageConfig {
  const whole = parseObject(body);
  if (whole === undefined) throw refused('malformed', 'the config blob is not a JSON object');
  const config = onlyFields(whole, CONFIG_FIELDS);
  const stated = statedPlatform(config);
  if (stated.architecture === '') throw refused('malformed', 'the config blob names no architecture');
  const platform = readPlatform(stated);
  if (typeof platform === 'string') throw refused('unsupported', `the config blob names ${platform}`);
  return isBundle(config) ? { platform, isBundle: true } : { platform };
}

function isBundle(config: JsonObject): boolean {
  const run = fieldOf(config, 'config');
  const labels = isObject(run) ? fieldOf(run, 'labels') : undefined;
  return isObject(labels) && BUNDLE_LABELS.some((name) => Object.hasOwn(labels, name));
}

/**
 * Returns each platform once, in order. Windows variants in one index differ only in `os.version`, which the program does not judge.
 *
 * @throws ImageError `too-large`
 */
export function uniquePlatforms(platforms: readonly Platform[]): Platform[] {
  const unique = new Map(platforms.map((platform) => [platformKey(platform), platform]));
  if (unique.size > MAX_PLATFORMS) {
    throw refused('too-large', `the index names ${unique.size} platforms; at most ${MAX_PLATFORMS} are allowed`);
  }
  return [...unique.values()];
}

/** Returns a text that equals that of no other platform. */
export function platformKey({ os, architecture, variant = '' }: Platform): string {
  return `${os}/${architecture}/${variant}`;
}

/**
 * Returns the platform, linux if it names no operating system, or why it is invalid. An accepted platform may be written to a label
 * or a toleration unchanged.
 */
export function readPlatform(stated: Platform): Platform | string {
  const rawOs = stated.os || 'linux';
  const os = rawOs.trim().toLowerCase();
  const architecture = normaliseArchitecture(stated.architecture);
  if (os === 'unknown' || architecture === undefined || !/^[a-z0-9][a-z0-9_-]{0,31}$/.test(os)) {
    const isStrange = os !== 'unknown' && architecture === undefined;
    const why = isStrange ? ', whose architecture is not a known GOARCH' : '';
    return `the platform "${printableAscii(rawOs, 40)}/${printableAscii(stated.architecture, 40)}"${why}`;
  }
  const { variant = '' } = stated;
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/.test(variant) ? { os, architecture, variant } : { os, architecture };
}

function mediaType(value: unknown): string {
  const [type = ''] = textOf(value).split(';', 1);
  return type.trim().toLowerCase();
}

/** Returns a text, or an empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
