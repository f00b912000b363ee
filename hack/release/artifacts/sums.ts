/** SHA256SUMS, which `sha256sum --check` reads, and release.json, which programs read. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Release } from '../types.ts';

/** The digests of a release's artifacts in the registry: `sha256:…`. */
export type Digests = {
  readonly image: string;
  readonly chart: string;
  /** The image of each platform (`linux/amd64`), in the order of the index. */
  readonly platforms?: Readonly<Record<string, string>>;
};

/** Writes SHA256SUMS of these files to `release.out`, sorted by name, and returns its path. Throws if two files have one name. */
export async function makeSums(release: Release, files: readonly string[]): Promise<string> {
  const sums = await sumsOf(files);
  const file = join(release.out, 'SHA256SUMS');
  await writeFile(file, [...sums].map(([name, sum]) => `${sum}  ${name}\n`).join(''));
  return file;
}

/** Writes release.json to `release.out` and returns its path. */
export async function makeRecord(release: Release, digests: Digests, files: readonly string[]): Promise<string> {
  const { version, tag, commit, created, source, image, chart } = release;
  const record = {
    version,
    tag,
    commit,
    created: created.toISOString(),
    source,
    image: {
      name: image,
      digest: digests.image,
      ...(digests.platforms === undefined ? {} : { platforms: digests.platforms }),
    },
    chart: { name: chart, digest: digests.chart },
    files: Object.fromEntries([...(await sumsOf(files))].map(([name, sum]) => [name, `sha256:${sum}`])),
  };
  const file = join(release.out, 'release.json');
  await writeFile(file, `${JSON.stringify(record, null, 2)}\n`);
  return file;
}

/** SHA-256 sums by the names of the files, sorted. */
async function sumsOf(files: readonly string[]): Promise<Map<string, string>> {
  const sorted = files
    .map((path) => ({ path, name: basename(path) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const sums = new Map<string, string>();
  for (const { path, name } of sorted) {
    if (sums.has(name)) throw new Error(`${path}: another file of the release has the name ${name}`);
    sums.set(
      name,
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex'),
    );
  }
  return sums;
}
