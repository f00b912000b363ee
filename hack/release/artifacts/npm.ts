/** The package for npm: the bundle, which needs no other package, with real names. */
import { chmod, copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../programs.ts';
import { releasedPage } from '../names.ts';
import type { Release } from '../types.ts';

/** Builds the bundle in the checkout, packs it, and returns the path of the package. */
export async function makePackage(release: Release): Promise<string> {
  await run(process.execPath, ['hack/build.mjs'], { cwd: release.checkout, loud: true });
  return packPackage(release);
}

/** As `makePackage`, for a checkout that has a bundle. The same inputs give the same bytes, with the same npm. */
export async function packPackage(release: Release): Promise<string> {
  const { checkout, work, out, version } = release;
  const source: SourcePackage = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'));
  const readme = await readFile(join(checkout, 'README.md'), 'utf8');
  const contents = {
    'dist/main.js': await readFile(join(checkout, 'dist/main.js')),
    LICENSE: await readFile(join(checkout, 'LICENSE')),
    'README.md': releasedPage(readme, 'README.md', release),
    'package.json': `${JSON.stringify(releasedPackage(source, release), null, 2)}\n`,
  };
  const folder = join(work, 'npm');
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'dist'), { recursive: true });
  for (const [path, content] of Object.entries(contents)) {
    await writeFile(join(folder, path), content);
    // npm pack gives every file one time, but keeps what the umask made of its mode.
    await chmod(join(folder, path), 0o644);
  }

  await mkdir(out, { recursive: true });
  await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', work], { cwd: folder, loud: true });
  const file = join(out, `archaware-controller-npm-${version}.tgz`);
  await copyFile(join(work, `${source.name}-${version}.tgz`), file);
  return file;
}

/** What a release takes from package.json. */
export type SourcePackage = {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
};

/** Returns the package.json of the package. It may be published; it has no scripts and no dependencies, because the bundle holds them. */
export function releasedPackage(found: SourcePackage, { source }: Release) {
  const { name, version, description, license, type, engines, bin, files } = found;
  return {
    ...{ name, version, description, license, type, engines, bin, files },
    keywords: ['kubernetes', 'arm64', 'multi-arch', 'scheduling'],
    // npm compares it with the repository in the provenance, and refuses the package if they differ.
    repository: { type: 'git', url: `git+${source}.git` },
    homepage: `${source}#readme`,
    bugs: { url: `${source}/issues` },
    publishConfig: { access: 'public', provenance: true },
  };
}
