/** The single executables for six platforms, and the manifest with which Krew installs them. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { archiveOf, TARGETS } from '../../executables/targets.ts';
import { run } from '../../programs.ts';
import type { Release } from '../types.ts';

/** Krew wants a file with the name of the plug-in. */
const KREW = 'archaware.yaml';

/** Builds the executables in the checkout, copies the archives and Krew's manifest to `release.out`, and returns their paths. */
export async function makeExecutables(release: Release): Promise<string[]> {
  const { checkout, downloads, source, out } = release;
  const args = ['hack/executables.ts', '--url', downloads, '--homepage', source];
  await run(join(checkout, 'node_modules/.bin/tsx'), args, { cwd: checkout, loud: true });
  const copies = [...TARGETS.map(archiveOf), KREW].map(async (name) => {
    const file = join(out, name);
    await copyFile(join(checkout, 'dist/executables', name), file);
    return file;
  });
  return Promise.all(copies);
}
