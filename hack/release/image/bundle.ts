/** Which packages of npm are in our bundle, dist/main.js: those that esbuild took something from, in the versions of the lockfile. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { run } from '../../programs.ts';
import type { Release } from '../types.ts';

/** A package of the lockfile. */
export type LockedPackage = {
  readonly name: string;
  readonly version: string;
  readonly license: string | undefined;
  /** SHA-512 of the archive in npm's registry, hexadecimal. */
  readonly sha512: string | undefined;
};

/** A bundle and what is in it. */
export type Bundle = { readonly bytes: Buffer; readonly packages: readonly LockedPackage[] };

const metafile = z.object({
  outputs: z.record(z.string(), z.object({ inputs: z.record(z.string(), z.object({ bytesInOutput: z.number() })) })),
});
const lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      name: z.string().optional(),
      version: z.string().optional(),
      license: z.string().optional(),
      integrity: z.string().optional(),
    }),
  ),
});

/** The folder of a package in the path of a file: to the last node_modules. */
const FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/** Builds the bundle in the checkout. */
export async function makeBundle({ checkout, work }: Release): Promise<Bundle> {
  const described = join(work, 'bundle.json');
  await run(process.execPath, ['hack/build.mjs', `--metafile=${described}`], { cwd: checkout });
  const [bytes, inputs, locked] = await Promise.all([
    readFile(join(checkout, 'dist/main.js')),
    readFile(described, 'utf8'),
    readFile(join(checkout, 'package-lock.json'), 'utf8'),
  ]);
  return { bytes, packages: bundledPackages(JSON.parse(inputs), JSON.parse(locked)) };
}

/** Reads the packages in a bundle, in the order of their folders. Throws if one is not in the lockfile. */
export function bundledPackages(described: unknown, locked: unknown): LockedPackage[] {
  const { outputs } = metafile.parse(described);
  const { packages } = lockfile.parse(locked);
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
  // Files that were read and of which nothing is left have 0.
  const used = files.flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? (FOLDER.exec(path) ?? []) : []));
  return [...new Set(used)].sort().map((folder) => {
    const { name, version, license, integrity } = packages[folder] ?? {};
    if (version === undefined) throw new Error(`${folder} is in the bundle, but not in package-lock.json`);
    return { name: name ?? folder.replace(/^.*node_modules\//, ''), version, license, sha512: sha512Of(integrity) };
  });
}

/** Reads Subresource Integrity: `sha512-` and Base64. */
function sha512Of(integrity: string | undefined): string | undefined {
  const [, base64] = /^sha512-(\S+)/.exec(integrity ?? '') ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString('hex');
}
