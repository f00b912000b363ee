/** What is in an image: the files of its layers that tell of packages. */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { type Layout, type PlatformManifest, readBlob, readManifest } from './layout.ts';
import { tarEntries } from './tar.ts';

/** What the image of one platform has. */
export type Contents = {
  readonly platform: PlatformManifest;
  /** Undefined for an image without an operating system. */
  readonly system: System | undefined;
  readonly node: NodeBinary | undefined;
  readonly debian: readonly DebianPackage[];
  /** Packages of npm that stand as files in the image: npm itself, for example. Not those in our bundle. */
  readonly npm: readonly NpmPackage[];
  /** Our bundle, dist/main.js. */
  readonly bundle: Buffer | undefined;
};

/** From os-release(5). */
export type System = { readonly id: string; readonly version: string; readonly name: string };
/** `version` without v; `sha256` of the file, hexadecimal. */
export type NodeBinary = { readonly version: string; readonly sha256: string };
export type DebianPackage = {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** The source package, if it has another name or version. */
  readonly source: string | undefined;
};
export type NpmPackage = { readonly name: string; readonly version: string; readonly license: string | undefined };

const WHITEOUT = /^(.*\/)?\.wh\.(.+)$/;
const BUNDLE = 'app/dist/main.js';
const NODE = /^usr\/(?:local\/)?bin\/node$/;
const SYSTEM = ['etc/os-release', 'usr/lib/os-release'];
/** One file, or a file for each package in images that are made without dpkg. */
const DEBIAN = /^var\/lib\/dpkg\/status(?:\.d\/[^/]+)?$/;
const NPM = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$|^opt\/[^/]+\/package\.json$/;

/** Reads what is in the image of each platform. Throws if a layer cannot be read. */
export async function readContents({ directory, platforms }: Layout): Promise<Contents[]> {
  const found: Contents[] = [];
  // One after the other: the layers of a platform are some hundred megabytes.
  for (const platform of platforms) {
    const { layers } = await readManifest(directory, platform.digest);
    const files = new Map<string, Buffer>();
    for (const { digest, mediaType } of layers)
      applyLayer(files, unpacked(await readBlob(directory, digest), mediaType));
    found.push(contentsOf(platform, files));
  }
  return found;
}

/** Adds the wanted files of a layer (a tar archive), and removes what the layer removes (image-spec, layer.md, "Whiteouts"). */
export function applyLayer(files: Map<string, Buffer>, layer: Buffer): void {
  const added = new Map<string, Buffer>();
  for (const { path, bytes } of tarEntries(layer, (one) => isWanted(one) || WHITEOUT.test(one))) {
    const [, folder = '', name] = WHITEOUT.exec(path) ?? [];
    if (name === '.wh..opq') removeBelow(files, folder);
    else if (name !== undefined) {
      files.delete(`${folder}${name}`);
      removeBelow(files, `${folder}${name}/`);
    } else if (bytes.length > 0) {
      added.set(path, bytes);
    }
  }
  for (const [path, bytes] of added) files.set(path, bytes);
}

/** Reads what the wanted files of a platform say. */
export function contentsOf(platform: PlatformManifest, files: ReadonlyMap<string, Buffer>): Contents {
  const matching = (pattern: RegExp) => [...files].filter(([path]) => pattern.test(path)).map(([, bytes]) => bytes);
  const [system] = SYSTEM.flatMap((path) => files.get(path) ?? []);
  const [node] = matching(NODE);
  return {
    platform,
    system: system === undefined ? undefined : readSystem(system.toString()),
    node: node === undefined ? undefined : readNode(node),
    debian: matching(DEBIAN).flatMap((bytes) => readDebian(bytes.toString())),
    npm: matching(NPM).flatMap((bytes) => readNpm(bytes.toString())),
    bundle: files.get(BUNDLE),
  };
}

/** Reads os-release(5). */
export function readSystem(text: string): System | undefined {
  const value = (name: string) => new RegExp(`^${name}=["']?([^"'\n]*)["']?$`, 'm').exec(text)?.[1];
  const id = value('ID');
  return id === undefined ? undefined : { id, version: value('VERSION_ID') ?? '', name: value('PRETTY_NAME') ?? id };
}

/** Reads the installed packages in the list of dpkg (deb-control(5)). */
export function readDebian(text: string): DebianPackage[] {
  return text.split(/\n\n+/).flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: *(.+)$`, 'm').exec(paragraph)?.[1]?.trim();
    const [name, version, architecture] = [field('Package'), field('Version'), field('Architecture')];
    // "deinstall ok config-files": only its configuration is left. Lists without dpkg have no Status.
    const isInstalled = / installed$/.test(field('Status') ?? 'install ok installed');
    if (name === undefined || version === undefined || architecture === undefined || !isInstalled) return [];
    return [{ name, version, architecture, source: readDebianSource(field('Source')) }];
  });
}

/** `NAME`, or `NAME (VERSION)` where the version differs; as purl writes it: NAME@VERSION. */
function readDebianSource(source: string | undefined): string | undefined {
  const [, name, version] = /^(\S+)(?: \(([^)]+)\))?$/.exec(source ?? '') ?? [];
  return version === undefined ? name : `${name}@${version}`;
}

/** Node.js has the address of its headers in its binary (process.release.headersUrl). */
function readNode(binary: Buffer): NodeBinary | undefined {
  const marker = 'nodejs.org/download/release/v';
  const at = binary.indexOf(marker);
  const [version] =
    at === -1
      ? []
      : (/^\d+\.\d+\.\d+/.exec(binary.toString('latin1', at + marker.length, at + marker.length + 20)) ?? []);
  return version === undefined ? undefined : { version, sha256: createHash('sha256').update(binary).digest('hex') };
}

/** Empty for a package.json that names no package, such as the ones that only say how files are loaded. */
function readNpm(text: string): NpmPackage[] {
  const { name, version, license }: { name?: unknown; version?: unknown; license?: unknown } = JSON.parse(text);
  if (typeof name !== 'string' || typeof version !== 'string') return [];
  return [{ name, version, license: typeof license === 'string' ? license : undefined }];
}

function isWanted(path: string): boolean {
  return path === BUNDLE || SYSTEM.includes(path) || [NODE, DEBIAN, NPM].some((pattern) => pattern.test(path));
}

function removeBelow(files: Map<string, Buffer>, folder: string): void {
  for (const path of files.keys()) if (path.startsWith(folder)) files.delete(path);
}

function unpacked(blob: Buffer, mediaType: string): Buffer {
  if (mediaType.endsWith('.tar')) return blob;
  if (mediaType.endsWith('+gzip')) return gunzipSync(blob);
  throw new Error(`a layer has the media type ${mediaType}; expected a tar archive, compressed with gzip or not`);
}
