/** Directories as the kubelet mounts ConfigMaps: links to what is behind `..data`, which is swapped as a whole. */
import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Contents by path; a path may be `folder/file`, as a ConfigMap's `items` have it. */
export type Contents = Readonly<Record<string, string>>;

/**
 * Mounts contents at a directory, or swaps what is mounted there, in the kubelet's order: the new version, the swap, links
 * that are new, links to nowhere, the version before.
 */
export async function mount(directory: string, contents: Contents): Promise<void> {
  const before = await readlink(join(directory, '..data')).catch(() => undefined);
  const version = `..2026_01_01_00_00_${String(Number(before?.split('_').at(-1) ?? 0) + 1).padStart(2, '0')}`;
  for (const [path, text] of Object.entries(contents)) {
    const file = join(directory, version, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await mkdir(join(directory, version), { recursive: true });
  await symlink(version, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  const names = new Set(Object.keys(contents).map((path) => path.split('/')[0] ?? path));
  for (const name of names) {
    await symlink(join('..data', name), join(directory, name)).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    });
  }
  if (before === undefined) return;
  for (const name of await readdir(join(directory, before))) {
    if (!names.has(name)) await rm(join(directory, name));
  }
  await rm(join(directory, before), { recursive: true });
}
