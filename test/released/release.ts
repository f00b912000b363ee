/** A release of what is in this checkout, in directories of its own. */
import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Release } from '../../hack/release/types.ts';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const IMAGE_DIGEST = `sha256:${'a1'.repeat(32)}`;

const { version }: { version: string } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'));

export const CHANGELOG = `# Changelog

## Unreleased

## ${version} (2026-11-23)

### In short

- New: images of \`registry.invalid/archaware-controller\`, and a [page](docs/install.md#helm).
- **Fixed:** a pod that waited
  for ever.

### Before you update

- **Apply the new policies before the program.**

### Security

- Text is escaped.

## 0.1.0 (2026-01-01)

- Everything.

[${version}]: https://source.invalid/archaware-controller/commits/v${version}
`;

export type TestRelease = Release & { remove(): Promise<void> };

/** Makes a checkout of what hack/release reads. `remove` deletes everything. */
export async function testRelease(changes: Partial<Release> = {}): Promise<TestRelease> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-release-'));
  const checkout = join(directory, 'checkout');
  await mkdir(join(checkout, 'dist'), { recursive: true });
  for (const path of ['manifests', 'README.md', 'LICENSE', 'package.json', 'dist/main.js']) {
    await cp(join(ROOT, path), join(checkout, path), { recursive: true });
  }
  await writeFile(join(checkout, 'CHANGELOG.md'), CHANGELOG);
  const source = 'https://git.example.com/team/archaware-controller';
  const place = 'registry.example.com:5000/team';
  return {
    version,
    tag: `v${version}`,
    commit: '0123456789abcdef0123456789abcdef01234567',
    created: new Date('2026-11-23T18:21:50Z'),
    registry: 'registry.example.com:5000',
    repository: 'team',
    image: `${place}/archaware-controller`,
    chart: `${place}/charts/archaware-controller`,
    source,
    downloads: `${source}/releases/download`,
    checkout,
    out: join(directory, 'out'),
    work: join(directory, 'work'),
    ...changes,
    remove: () => rm(directory, { recursive: true }),
  };
}

/** Unpacks a compressed archive and returns its text files by their paths. */
export async function textsIn(file: string): Promise<Map<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-unpacked-'));
  try {
    execFileSync('tar', ['-xzf', file, '-C', directory]);
    return await textsBelow(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The files below a directory, by their paths in it. */
export async function textsBelow(directory: string): Promise<Map<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const texts = paths
    .sort()
    .map(async (path) => [path.slice(directory.length + 1), await readFile(path, 'utf8')] as const);
  return new Map(await Promise.all(texts));
}

/** The lines with a placeholder, or with a sentence that is true before a release only. */
export function unreleasedLines(texts: ReadonlyMap<string, string>): string[] {
  const isLeft =
    /\b(?:registry|source|releases)\.invalid\b|[Nn]o release is published|cannot be pulled|<!-- \/?(?:un)?released/;
  return [...texts].flatMap(([path, text]) =>
    text
      .split('\n')
      .filter((line) => isLeft.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
}
