/** An image with Node.js and npm that needs no network: what the Dockerfile begins from where Docker Hub cannot be reached. */
import { copyFile, cp, mkdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Program, run } from './programs.ts';

/** What the Dockerfile's image is published for. */
export const ARCHITECTURES = ['amd64', 'arm64', 'ppc64le', 's390x'] as const;
/** This machine's, as images call it. */
export const OWN_ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Pushes `HOST/base` and gives its reference, by digest. The image of this machine's architecture holds this machine's Node.js, npm, shell
 * and certificate authorities; those of the others are never run, and hold their name.
 */
export async function pushBaseImage(buildah: Program, directory: string, host: string): Promise<string> {
  await Promise.all(
    ARCHITECTURES.filter((architecture) => architecture !== OWN_ARCHITECTURE).map(async (architecture) => {
      await mkdir(join(directory, architecture), { recursive: true });
      await writeFile(join(directory, architecture, 'architecture'), architecture);
    }),
  );
  await makeRoot(join(directory, OWN_ARCHITECTURE));
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const variables = `ENV PATH=${path} NODE_EXTRA_CA_CERTS=${AUTHORITIES}`;
  const steps = ['FROM scratch', 'ARG TARGETARCH', 'COPY $TARGETARCH /', variables];
  await writeFile(join(directory, 'Containerfile'), [...steps, 'CMD ["node"]'].join('\n'));
  const platform = ARCHITECTURES.map((architecture) => `linux/${architecture}`).join();
  await run(buildah, 'build', '--platform', platform, '--manifest', 'base', directory);
  const digest = join(directory, 'digest');
  const to = `docker://${host}/base:1`;
  await run(buildah, 'manifest', 'push', '--all', '--tls-verify=false', '--digestfile', digest, 'base', to);
  return `${host}/base@${await readFile(digest, 'utf8')}`;
}

/** Makes the files of this machine's architecture: its Node.js, npm, shell and certificate authorities. */
export async function makeRoot(root: string): Promise<void> {
  const npm = dirname(dirname(await realpath((await run(['which'], 'npm')).trim())));
  const programs = {
    '/usr/bin/node': process.execPath,
    '/usr/bin/env': '/usr/bin/env',
    '/usr/bin/tr': '/usr/bin/tr',
    '/bin/sh': '/bin/sh',
  };
  const libraries = await Promise.all(Object.values(programs).map(librariesOf));
  const files = new Map(Object.entries({ ...programs, [AUTHORITIES]: AUTHORITIES }));
  for (const library of libraries.flat()) files.set(library, library);
  await Promise.all(
    ['root', 'tmp', 'usr/lib/node_modules'].map((name) => mkdir(join(root, name), { recursive: true })),
  );
  for (const [to, from] of files) {
    await mkdir(dirname(join(root, to)), { recursive: true });
    await copyFile(from, join(root, to));
  }
  await cp(npm, join(root, 'usr/lib/node_modules/npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'));
}

/** The paths that the dynamic linker would load, its own included. */
async function librariesOf(program: string): Promise<string[]> {
  return [...(await run(['ldd'], program)).matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map(([, path = '']) => path);
}
