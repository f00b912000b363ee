/** The files that describe the image: its bill of materials and its provenance. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { attempt } from '../programs.ts';
import type { BaseImage } from './image/build.ts';
import { makeBundle } from './image/bundle.ts';
import { type Contents, readContents } from './image/contents.ts';
import type { Layout } from './image/layout.ts';
import { billOfMaterials } from './image/sbom.ts';
import { provenance, readBuilder } from './provenance.ts';
import type { Release } from './types.ts';

/** Paths in release.out. */
export type Descriptions = {
  readonly sbom: string;
  readonly provenance: string;
  /** What the bill of materials lacks. */
  readonly gaps: readonly string[];
};

/** Writes both files. Throws if an image does not have the bundle that the packages were read from. */
export async function describeImage(release: Release, image: Layout, base: BaseImage): Promise<Descriptions> {
  const bundle = await makeBundle(release);
  const platforms = await readContents(image);
  for (const { platform, bundle: found } of platforms) {
    if (found?.equals(bundle.bytes) === true) continue;
    throw new Error(
      `the image for ${platform.os}/${platform.architecture} does not have the dist/main.js of ${release.tag}`,
    );
  }
  const name = join(release.out, `archaware-controller-${release.version}`);
  const files = { sbom: `${name}.cdx.json`, provenance: `${name}.provenance.json` };
  const subject = { release, digest: image.digest, base, platforms, bundled: bundle.packages };
  await writeFile(files.sbom, billOfMaterials(subject));
  const lockfile = createHash('sha256')
    .update(await readFile(join(release.checkout, 'package-lock.json')))
    .digest('hex');
  const facts = { base, lockfile, tools: await toolVersions(), builder: readBuilder(process.env) };
  await writeFile(files.provenance, `${JSON.stringify(provenance(release, facts), undefined, 1)}\n`);
  return { ...files, gaps: gapsOf(platforms) };
}

/** What the bill of materials lacks, in words. */
export function gapsOf(platforms: readonly Contents[]): string[] {
  return platforms.flatMap(({ platform: { os, architecture }, node, debian }) => {
    const missing = [
      ...(node === undefined ? ['Node.js'] : []),
      ...(debian.length === 0 ? ['packages of the operating system'] : []),
    ];
    return missing.length === 0
      ? []
      : [`no ${missing.join(' and no ')} was found in the image for ${os}/${architecture}`];
  });
}

/** The versions of what made the image. */
async function toolVersions(): Promise<Record<string, string>> {
  const [buildah, buildx] = await Promise.all([
    versionOf('buildah', ['--version']),
    versionOf('docker', ['buildx', 'version']),
  ]);
  // As hack/image/build.sh chooses.
  const builder = buildah ?? buildx;
  return { node: process.version, ...(builder === undefined ? {} : { builder }) };
}

async function versionOf(program: string, args: readonly string[]): Promise<string | undefined> {
  const ended = await attempt(program, args).catch(() => undefined);
  return ended?.code === 0 ? ended.stdout.trim() : undefined;
}
