/** The image that a rehearsed release stands on: Node.js of four architectures, each a program of that architecture. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { ARCHITECTURES, makeRoot, OWN_ARCHITECTURE } from '../../e2e/support/base-image.ts';
import type { Program } from '../../e2e/support/programs.ts';
import type { Place } from './place.ts';

/** What hack/cluster/build-foreign.sh fetches. */
const foreign = () => join(binaries(), 'foreign');

/** The statically linked program that emulates an architecture. */
export const emulatorOf = (architecture: string): string => join(foreign(), `qemu-${architecture}`);

/** The version of Node.js in the base of each architecture: that of this machine, and what hack/cluster/build-foreign.sh fetches. */
export const NODE_VERSIONS: Readonly<Record<string, string>> = {
  arm64: '22.23.2',
  ppc64le: '20.11.0',
  s390x: '20.11.0',
  [OWN_ARCHITECTURE]: process.versions.node,
};

/** What is missing for it; empty if nothing is. */
export const missingForBase = (): string[] =>
  existsSync(join(foreign(), '.stamp')) ? [] : [`${foreign()} (run hack/cluster/build-foreign.sh)`];

/** Pushes it as HOST/base/node:24; returns its name by digest. A copy stays beside the binaries, because building it takes a minute. */
export async function pushBase(place: Place): Promise<string> {
  const layout = await builtBase(place);
  const name = `${place.host}/base/node`;
  const pushed = (await place.must(['crane', 'push', layout, `${name}:24`])).trim();
  const digest = /@(sha256:[0-9a-f]{64})$/.exec(pushed)?.[1];
  if (digest === undefined) throw new Error(`crane push printed ${pushed}`);
  return `${name}@${digest}`;
}

async function builtBase(place: Place): Promise<string> {
  const sources = [import.meta.url, new URL('../../e2e/support/base-image.ts', import.meta.url).href];
  const contents = await Promise.all([
    ...sources.map((url) => readFile(fileURLToPath(url), 'utf8')),
    readFile(join(foreign(), '.stamp'), 'utf8'),
  ]);
  const hash = createHash('sha256').update(contents.join('')).update(process.version).digest('hex');
  const copy = join(dirname(binaries()), 'release-base', hash);
  if (existsSync(copy)) return copy;
  await rm(dirname(copy), { recursive: true, force: true });
  await mkdir(dirname(copy), { recursive: true });
  const unfinished = await mkdtemp(join(dirname(copy), '.new-'));
  await build(place, unfinished);
  await rename(unfinished, copy);
  return copy;
}

async function build(place: Place, layout: string): Promise<void> {
  const directory = join(place.directory, 'base');
  await mkdir(join(directory, 'tmp'), { recursive: true });
  const storage = join(directory, 'storage');
  const buildah: Program = ['buildah', '--root', storage, '--runroot', `${storage}-run`];
  const environment = { TMPDIR: join(directory, 'tmp'), BUILDAH_ISOLATION: 'chroot' };
  for (const architecture of ARCHITECTURES) {
    const root = join(directory, architecture);
    if (architecture === OWN_ARCHITECTURE) await makeRoot(root);
    else await cp(join(foreign(), architecture), root, { recursive: true, verbatimSymlinks: true });
    const variables = [
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      `NODE_VERSION=${NODE_VERSIONS[architecture]}`,
      'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
    ];
    const steps = ['FROM scratch', `COPY ${architecture} /`, `ENV ${variables.join(' ')}`, 'CMD ["node"]'];
    const file = join(directory, `Containerfile.${architecture}`);
    await writeFile(file, steps.join('\n'));
    const options = ['--timestamp', '0', '--platform', `linux/${architecture}`, '--manifest', 'base', '--file', file];
    await place.must([...buildah, 'build', ...options, directory], { environment });
  }
  await place.must([...buildah, 'manifest', 'push', '--all', 'base', `docker://${place.host}/base/unfinished:1`], {
    environment,
  });
  await place.must([...buildah, 'rmi', '--all', '--force'], { environment });
  await place.must(['crane', 'pull', '--format=oci', `${place.host}/base/unfinished:1`, layout]);
  await rm(directory, { recursive: true });
}
