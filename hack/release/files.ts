/** Everything that is published beside the image: one call for each kind. */
import { makeChart } from './artifacts/chart.ts';
import { makeExecutables } from './artifacts/executables.ts';
import { makeManifests } from './artifacts/manifests.ts';
import { makeNotes, type Signer } from './artifacts/notes.ts';
import { makePackage } from './artifacts/npm.ts';
import { makePolicies } from './artifacts/policies.ts';
import { type Digests, makeRecord, makeSums } from './artifacts/sums.ts';
import { describeImage } from './describe.ts';
import type { BaseImage } from './image/build.ts';
import type { Layout } from './image/layout.ts';
import type { Artifact, Release } from './types.ts';

/** What was made. The paths are in release.out. */
export type Files = {
  readonly chart: Artifact;
  readonly sbom: string;
  readonly provenance: string;
  /** SHA256SUMS, of every file that is published. */
  readonly sums: string;
  /** What the bill of materials lacks. */
  readonly gaps: readonly string[];
};

/** Makes all files of a release, of which the image is built. The same commit and tools give the same files. */
export async function makeFiles(release: Release, image: Layout, base: BaseImage, signer: Signer): Promise<Files> {
  const { sbom, provenance, gaps } = await describeImage(release, image, base);
  const chart = await makeChart(release, image.digest);
  const files = [
    sbom,
    provenance,
    chart.file,
    ...(await makeManifests(release, image.digest)),
    ...(await makePolicies(release)),
    ...(await makeExecutables(release)),
    await makePackage(release),
  ];
  const platforms = image.platforms.map(({ os, architecture, digest }) => [`${os}/${architecture}`, digest] as const);
  const digests: Digests = { image: image.digest, chart: chart.digest, platforms: Object.fromEntries(platforms) };
  await makeNotes(release, digests, signer);
  const record = await makeRecord(release, digests, files);
  const sums = await makeSums(release, [...files, record]);
  return { chart, sbom, provenance, sums, gaps };
}
