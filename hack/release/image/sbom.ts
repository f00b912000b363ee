/**
 * The bill of materials of an image index: one CycloneDX document for all of its platforms. It lists Node.js, the packages of the
 * operating system, the packages of npm that stand in the image, and those that are in our bundle.
 */
import { createHash } from 'node:crypto';
import { Enums, Models, Serialize, SPDX, Spec } from '@cyclonedx/cyclonedx-library';
import { PackageURL } from 'packageurl-js';
import type { Release } from '../types.ts';
import type { BaseImage } from './build.ts';
import type { LockedPackage } from './bundle.ts';
import type { Contents, DebianPackage, NodeBinary, NpmPackage, System } from './contents.ts';

/** What the document is about. */
export type Subject = {
  readonly release: Pick<Release, 'version' | 'commit' | 'created' | 'source' | 'image'>;
  /** The digest of the index. */
  readonly digest: string;
  readonly base: BaseImage;
  readonly platforms: readonly Contents[];
  /** What is in our bundle. */
  readonly bundled: readonly LockedPackage[];
};

const { Component, Bom, Metadata } = Models;
type Component = Models.Component;
const { ComponentType, HashAlgorithm } = Enums;

/** Makes the document, JSON of CycloneDX 1.6. The same subject gives the same text. */
export function billOfMaterials({ release, digest, base, platforms, bundled }: Subject): string {
  /** By purl: what several platforms share is listed once. */
  const components = new Map<string, Component>();
  const add = (one: Component): Component => {
    const known = components.get(one.bomRef.value ?? '');
    if (known !== undefined) return known;
    components.set(one.bomRef.value ?? '', one);
    return one;
  };
  const program = add(programOf(release, platforms));
  for (const one of bundled) program.dependencies.add(add(npmComponent(one)).bomRef);
  const baseImage = add(container(base.name, base.digest, undefined));
  const top = container(release.image, digest, release.version);
  for (const { platform, system, node, debian, npm } of platforms) {
    const own = add(container(release.image, platform.digest, release.version, platform.architecture));
    top.dependencies.add(own.bomRef);
    const parts = [
      ...(system === undefined ? [] : [systemComponent(system)]),
      ...(node === undefined ? [] : [nodeComponent(node, platform.architecture)]),
      ...debian.map((one) => debianComponent(one, system)),
      ...npm.map((one) => npmComponent({ ...one, sha512: undefined })),
    ];
    for (const one of [program, baseImage, ...parts.map(add)]) own.dependencies.add(one.bomRef);
  }
  const bom = new Bom({
    serialNumber: serialOf(digest),
    metadata: new Metadata({ timestamp: release.created, component: top }),
  });
  bom.metadata.tools.components.add(
    new Component(ComponentType.Application, 'hack/release.sh', { version: release.version }),
  );
  for (const one of components.values()) bom.components.add(one);
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 1 })}\n`;
}

/** `pkg:oci` (purl-spec, oci-definition): the last part of the name, and the rest as its registry. */
function container(name: string, digest: string, version: string | undefined, architecture?: string): Component {
  const short = name.slice(name.lastIndexOf('/') + 1).replace(/:.*$/, '');
  const purl = purlOf('oci', short, digest, {
    arch: architecture,
    repository_url: name.replace(/:[^/]*$/, ''),
    tag: version,
  });
  const one = new Component(ComponentType.Container, name, { bomRef: purl, purl, version: version ?? digest });
  one.hashes.set(HashAlgorithm['SHA-256'], digest.replace('sha256:', ''));
  return one;
}

/** Our own program. It is in no registry of packages, so its address is that of its commit. */
function programOf({ version, commit, source }: Subject['release'], platforms: readonly Contents[]): Component {
  const purl = purlOf('generic', 'archaware-controller', version, { vcs_url: `git+${source}@${commit}` });
  const one = new Component(ComponentType.Application, 'archaware-controller', { bomRef: purl, purl, version });
  one.licenses.add(new Models.SpdxLicense('MIT'));
  one.externalReferences.add(new Models.ExternalReference(source, Enums.ExternalReferenceType.VCS));
  const bundle = platforms.find((platform) => platform.bundle !== undefined)?.bundle;
  if (bundle !== undefined) one.hashes.set(HashAlgorithm['SHA-256'], createHash('sha256').update(bundle).digest('hex'));
  return one;
}

function systemComponent({ id, version, name }: System): Component {
  const purl = purlOf('generic', id, version, {});
  return new Component(ComponentType.OperatingSystem, id, { bomRef: `os:${purl}`, version, description: name });
}

function nodeComponent({ version, sha256 }: NodeBinary, architecture: string): Component {
  const purl = purlOf('generic', 'node', version, { arch: architecture });
  // Advisories on Node.js name it by CPE.
  const cpe = `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`;
  const one = new Component(ComponentType.Platform, 'node', { bomRef: purl, purl, version, cpe });
  one.description = 'Node.js';
  one.licenses.add(new Models.SpdxLicense('MIT'));
  one.hashes.set(HashAlgorithm['SHA-256'], sha256);
  return one;
}

/** `pkg:deb` (purl-spec, deb-definition). Advisories on Debian name source packages, which scanners read in `upstream`. */
function debianComponent(
  { name, version, architecture, source }: DebianPackage,
  system: System | undefined,
): Component {
  const distro = system === undefined ? undefined : `${system.id}-${system.version}`;
  const qualifiers = { arch: architecture, distro, upstream: source };
  const purl = purlOf('deb', name, version, qualifiers, system?.id ?? 'debian');
  return new Component(ComponentType.Library, name, { bomRef: purl, purl, version });
}

function npmComponent({
  name,
  version,
  license,
  sha512,
}: NpmPackage & { readonly sha512: string | undefined }): Component {
  const [group, own] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const purl = purlOf('npm', own ?? name, version, {}, group);
  const one = new Component(ComponentType.Library, own ?? name, { bomRef: purl, purl, version });
  if (group !== undefined) one.group = group;
  if (SPDX.isSupportedSpdxId(license)) one.licenses.add(new Models.SpdxLicense(license));
  else if (license !== undefined) one.licenses.add(new Models.NamedLicense(license));
  if (sha512 !== undefined) one.hashes.set(HashAlgorithm['SHA-512'], sha512);
  return one;
}

function purlOf(
  type: string,
  name: string,
  version: string,
  qualifiers: Readonly<Record<string, string | undefined>>,
  namespace?: string,
): string {
  const given = Object.entries(qualifiers).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
  return new PackageURL(type, namespace, name, version, Object.fromEntries(given), undefined).toString();
}

/** A UUID (RFC 9562, version 8) of the image's digest, because a random one would differ in each build. */
function serialOf(digest: string): string {
  const [, a, b, c, d, e] = /^sha256:(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest) ?? [];
  if (e === undefined) throw new Error(`"${digest}" is not a digest`);
  return `urn:uuid:${a}-${b}-8${c}-8${d}-${e}`;
}
