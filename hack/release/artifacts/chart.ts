/** The chart as a file and as an OCI artifact, with the real name of the image and its digest. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { archive } from '../../executables/archive.ts';
import { changesOf, SECURITY, type Section, sectionOf } from '../changelog.ts';
import { pageOf, releasedPage, withRealNames } from '../names.ts';
import type { Artifact, Release } from '../types.ts';

/** The chart's folder in the repository, and its folder in the archive. */
const FOLDER = 'manifests/helm/archaware-controller';
const NAME = 'archaware-controller';

/** Those of the Dockerfile, in the order of the index. */
const PLATFORMS = ['linux/amd64', 'linux/arm64', 'linux/ppc64le', 'linux/s390x'];

/** Helm's types of an OCI artifact, as in its package pkg/registry. */
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG_TYPE = 'application/vnd.cncf.helm.config.v1+json';
const CONTENT_TYPE = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

/** A chart in a file of `release.out`, and the same in an OCI image layout. */
export type Chart = Artifact & { readonly file: string };

/** Makes the chart; the same inputs give the same bytes. Throws if a file of the chart is not as expected. */
export async function makeChart(release: Release, imageDigest: string): Promise<Chart> {
  const sources = await chartSources(release.checkout);
  const changelog = await readFile(join(release.checkout, 'CHANGELOG.md'), 'utf8');
  const files = releasedChart(sources, sectionOf(changelog, release.version), release, imageDigest);
  const entries = [...files].map(([name, text]) => ({
    name: `${NAME}/${name}`,
    bytes: Buffer.from(text),
    mode: 0o644,
  }));
  const content = archive(entries);
  const file = join(release.out, `${NAME}-${release.version}.tgz`);
  await mkdir(release.out, { recursive: true });
  await writeFile(file, content);

  const metadata: ChartMetadata = parse(files.get('Chart.yaml') ?? '');
  const layout = join(release.work, 'chart');
  return { file, layout, digest: await writeLayout(layout, content, metadata, release) };
}

type ChartMetadata = {
  readonly version: string;
  readonly description: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
};

/** The chart's files by their paths in it, sorted, and without ci/, as .helmignore says. */
async function chartSources(checkout: string): Promise<Map<string, string>> {
  const folder = join(checkout, FOLDER);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .filter((name) => !name.startsWith('ci/') && !name.startsWith('.'))
    .sort();
  const texts = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const);
  return new Map(await Promise.all(texts));
}

/** Returns the files of the chart as released. */
export function releasedChart(
  sources: ReadonlyMap<string, string>,
  changes: Section | undefined,
  release: Release,
  imageDigest: string,
): Map<string, string> {
  const released = new Map<string, string>();
  for (const [name, text] of sources) {
    if (name === 'Chart.yaml') released.set(name, chartYaml(text, changes, release, imageDigest));
    else if (name === 'README.md') released.set(name, releasedPage(text, `${FOLDER}/${name}`, release));
    else if (name === 'values.yaml') released.set(name, withImage(text, release, imageDigest));
    else if (name === 'templates/_names.tpl') released.set(name, withAdvice(text, release));
    else released.set(name, withRealNames(text, release));
  }
  return released;
}

/** https://artifacthub.io/docs/topics/annotations/helm/ says what each annotation means. */
function chartYaml(text: string, changes: Section | undefined, release: Release, imageDigest: string): string {
  const source: ChartMetadata = parse(text);
  const { version, tag } = release;
  const links = [
    { name: 'support', url: `${release.source}/issues` },
    { name: 'How to verify the release', url: pageOf(release, 'docs/verify.md') },
    { name: 'Changes', url: `${release.source}/releases/tag/${tag}` },
  ];
  const images = [{ name: NAME, image: `${release.image}:${version}@${imageDigest}`, platforms: PLATFORMS }];
  const list = changes === undefined ? [] : changesOf(changes);
  const annotations = {
    ...source.annotations,
    'artifacthub.io/prerelease': String(version.includes('-')),
    'artifacthub.io/containsSecurityUpdates': String(changes?.parts.some(({ title }) => title === SECURITY) ?? false),
    'artifacthub.io/images': yaml(images),
    'artifacthub.io/links': yaml(links),
    ...(list.length === 0 ? {} : { 'artifacthub.io/changes': withRealNames(yaml(list), release) }),
  };
  return yaml({ ...source, home: release.source, sources: [release.source], annotations });
}

const yaml = (value: unknown): string => stringify(value, { lineWidth: 0 });

function withImage(values: string, release: Release, imageDigest: string): string {
  const place = /^image:\n(?: {2}.*\n)*? {2}repository: ""\n(?: {2}.*\n)*?(?= {2}pullPolicy:)/m;
  const image = `image:
  # The image of this release. A mirror keeps the digest, so for a mirror only the repository changes.
  repository: ${release.image}
  # Default: the version of the chart's program. Without effect as long as there is a digest.
  tag: ""
  # The digest of ${release.image}:${release.version}; wins over the tag.
  digest: ${imageDigest}
`;
  return replaced(withRealNames(values, release), place, image, 'values.yaml: image.repository, tag, digest');
}

/** The template's advice for an empty repository, which is no longer true. */
function withAdvice(template: string, release: Release): string {
  const place = /required "image\.repository: not set\.[^"\n]*"/;
  const advice = `required "image.repository: not set. Set it to ${release.image}, or to the name of a mirror of it"`;
  return replaced(withRealNames(template, release), place, advice, '_names.tpl: the advice for image.repository');
}

function replaced(text: string, place: RegExp, by: string, what: string): string {
  if (!place.test(text)) throw new Error(`chart: not found in ${what}`);
  return text.replace(place, () => by);
}

/** Writes an OCI image layout with the manifest that `helm push` would push, and returns the manifest's digest. */
async function writeLayout(directory: string, content: Buffer, metadata: ChartMetadata, release: Release) {
  await rm(directory, { recursive: true, force: true });
  await mkdir(join(directory, 'blobs/sha256'), { recursive: true });
  const write = async (mediaType: string, bytes: Buffer) => {
    const sum = createHash('sha256').update(bytes).digest('hex');
    await writeFile(join(directory, 'blobs/sha256', sum), bytes);
    return { mediaType, digest: `sha256:${sum}`, size: bytes.length };
  };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const { annotations = {}, ...own } = metadata;
  const manifest = await write(
    MANIFEST_TYPE,
    json({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: await write(CONFIG_TYPE, json({ ...own, annotations })),
      layers: [await write(CONTENT_TYPE, content)],
      annotations: {
        ...annotations,
        'org.opencontainers.image.title': NAME,
        'org.opencontainers.image.description': metadata.description,
        'org.opencontainers.image.version': metadata.version,
        'org.opencontainers.image.created': release.created.toISOString().replace(/\.\d+Z$/, 'Z'),
        'org.opencontainers.image.url': release.source,
        'org.opencontainers.image.source': release.source,
        'org.opencontainers.image.revision': release.commit,
        'org.opencontainers.image.licenses': 'MIT',
      },
    }),
  );
  await writeFile(join(directory, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  await writeFile(join(directory, 'index.json'), json({ schemaVersion: 2, manifests: [manifest] }));
  return manifest.digest;
}
