/** The single manifests and the folder of kustomize, with the real name of the image and its digest. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { archive } from '../../executables/archive.ts';
import { CLEAN, FROM_SOURCES, NOT_PULLED } from '../../manifests/heads.ts';
import { PLACEHOLDER, pageOf, withRealNames } from '../names.ts';
import type { Release } from '../types.ts';

/** The files of manifests/ that people apply as they are. */
const SINGLE = [
  'archaware-controller.yaml',
  'archaware-controller-1.30.yaml',
  'archaware-controller-observe.yaml',
  'publish.yaml',
  'webhook.yaml',
];
/** Those that add to another one, and name no image. */
const ADDED: ReadonlySet<string> = new Set(['publish.yaml', 'webhook.yaml']);

/** Writes the manifests to `release.out` and returns their paths. Throws if the image is not where it is expected. */
export async function makeManifests(release: Release, imageDigest: string): Promise<string[]> {
  await mkdir(release.out, { recursive: true });
  const single = SINGLE.map(async (name) => {
    const text = await readFile(join(release.checkout, 'manifests', name), 'utf8');
    const file = join(release.out, name);
    await writeFile(file, releasedManifest(name, text, release, imageDigest));
    return file;
  });
  return [...(await Promise.all(single)), await makeKustomize(release, imageDigest)];
}

/** Returns a single manifest as released. */
export function releasedManifest(name: string, text: string, release: Release, imageDigest: string): string {
  const expected = ADDED.has(name) ? 0 : 1;
  const [head = '', ...objects] = text.split(/^(?=[^#])/m);
  return releasedHead(name, head, release) + withImage(name, objects.join(''), release, imageDigest, expected);
}

/** The comment at the head, which in the sources is about the sources. */
function releasedHead(name: string, head: string, release: Release): string {
  if (!ADDED.has(name) && !head.includes(FROM_SOURCES)) throw new Error(`${name}: its head is not as expected`);
  const published = `# archaware-controller ${release.version} of ${release.source}, commit ${release.commit}.
# How to check who built it, before you apply it: ${pageOf(release, 'docs/verify.md')}
`;
  const rest = head
    .replace(`${FROM_SOURCES}\n`, '')
    .replace(/^# Generated from .*\n/m, '')
    .replaceAll(CLEAN, 'kubectl archaware clean')
    .replaceAll(/(?<![\w/])(?:docs|manifests)\/[\w./-]*\w/g, (path) => pageOf(release, path));
  return withRealNames(rest + published, release);
}

function withImage(name: string, text: string, release: Release, imageDigest: string, expected: number): string {
  const placeholder = `${PLACEHOLDER.registry}archaware-controller:${release.version}`;
  const found = text.split(placeholder).length - 1;
  if (found !== expected) throw new Error(`${name}: found ${placeholder} ${found} times, expected ${expected}`);
  const named = text.replaceAll(placeholder, `${release.image}:${release.version}@${imageDigest}`);
  return withRealNames(withoutLine(named, NOT_PULLED), release);
}

const withoutLine = (text: string, line: string): string =>
  text
    .split('\n')
    .filter((one) => one.trim() !== line)
    .join('\n');

/** An archive of manifests/kustomize, whose overlays need no `images` of their own. */
async function makeKustomize(release: Release, imageDigest: string): Promise<string> {
  const folder = join(release.checkout, 'manifests/kustomize');
  const name = `archaware-controller-kustomize-${release.version}`;
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = found
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
  const entries = paths.map(async (path) => {
    const text = await readFile(join(folder, path), 'utf8');
    const expected = path === 'base/deployment.yaml' ? 1 : 0;
    const bytes = Buffer.from(withImage(path, text, release, imageDigest, expected));
    return { name: `${name}/${path}`, bytes, mode: 0o644 };
  });
  const license = { name: `${name}/LICENSE`, bytes: await readFile(join(release.checkout, 'LICENSE')), mode: 0o644 };
  const file = join(release.out, `${name}.tgz`);
  await writeFile(file, archive([license, ...(await Promise.all(entries))]));
  return file;
}
