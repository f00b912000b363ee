/** The single executables for six platforms, and the manifest with which Krew installs them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { archiveOf, TARGETS } from '../../executables/targets.ts';
import type { Release } from '../types.ts';

/** Krew wants a file with the name of the plug-in. */
const KREW = 'archaware.yaml';

/** Builds the executables in the checkout, copies the archives and Krew's manifest to `release.out`, and returns their paths. */
export async function makeExecutables(release: Release): Promise<string[]> {
  const { checkout, downloads, source, out } = release;
  const args = ['hack/executables.ts', '--url', downloads, '--homepage', source];
  await runIn(checkout, join(checkout, 'node_modules/.bin/tsx'), args);
  await mkdir(out, { recursive: true });
  const copies = [...TARGETS.map(archiveOf), KREW].map(async (name) => {
    const file = join(out, name);
    await copyFile(join(checkout, 'dist/executables', name), file);
    return file;
  });
  return Promise.all(copies);
}

/** Runs a program in a directory. What it prints goes to standard error, which is for progress. Throws if it fails. */
export async function runIn(directory: string, command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { cwd: directory, stdio: ['ignore', 2, 2] });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}`);
}
