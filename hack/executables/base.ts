/** Node.js of another platform, from its npm package. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { binaries } from '../cluster/spawn.ts';
import { NODE_VERSION, type Target } from './targets.ts';

/** More than the largest of the binaries, which have some 120 MB. */
const MOST_BYTES = 400e6;

/** The path of Node.js in its package. */
export const binaryOf = ({ os }: Target): string => `bin/node${os === 'windows' ? '.exe' : ''}`;

/** Returns a file of the package. Fetches the package with npm if the cache does not have it; throws if its hash differs. */
export function baseFile({ base, integrity }: Target, path: string): Buffer {
  const cache = join(dirname(binaries()), 'executables');
  const tarball = join(cache, `${base}-${NODE_VERSION}.tgz`);
  if (!existsSync(tarball)) {
    mkdirSync(cache, { recursive: true });
    output('npm', ['pack', '--silent', '--pack-destination', cache, `${base}@${NODE_VERSION}`]);
  }
  const found = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (found !== integrity) {
    rmSync(tarball);
    throw new Error(`${tarball}: got ${found}, expected ${integrity}; the file is removed, so run it again`);
  }
  return output('tar', ['-xzOf', tarball, `package/${path}`]);
}

/** Runs a program and returns its standard output. */
export function output(command: string, args: readonly string[], cwd?: string): Buffer {
  const { status, stdout, stderr, error } = spawnSync(command, args, { maxBuffer: MOST_BYTES, cwd });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stderr}`);
  return stdout;
}
