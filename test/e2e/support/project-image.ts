import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { pushBaseImage } from './base-image.ts';
import { type Program, run, runWith } from './programs.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What the image is built with. */
export const imageBuilders = ['buildah', 'git'] as const;

/** Where hack/build.sh has pushed the image of the last commit. */
export type ProjectImage = { readonly repository: string; readonly digest: string };

const DAY_MS = 86_400_000;

/** What the image is made of and by, in the last commit. */
const SOURCES = [
  ...'src package.json package-lock.json LICENSE Dockerfile hack/build.sh hack/build.mjs hack/without-unused.mjs'.split(
    ' ',
  ),
  'test/e2e/support/base-image.ts',
];

/**
 * Pushes the project's image to a host of 127.0.0.1. It is built once for the same sources and version of Node.js: a copy stays
 * beside the binaries of the cluster for a day.
 */
export async function pushProjectImage(directory: string, host: string): Promise<ProjectImage> {
  const copy = await copyPath();
  const repository = `${host}/team/archaware-controller`;
  if (existsSync(copy)) {
    await crane('push', '--index', join(copy, 'layout'), `${repository}:real`);
    return { repository, digest: await readFile(join(copy, 'digest'), 'utf8') };
  }
  const built = await buildProjectImage(directory, host);
  await keepProjectImage(built);
  return built;
}

/** Makes the copy, of an image of the last commit that is at a registry. */
export async function keepProjectImage({ repository, digest }: ProjectImage): Promise<void> {
  const copy = await copyPath();
  if (existsSync(copy)) return;
  const copies = dirname(copy);
  await mkdir(copies, { recursive: true });
  const unfinished = await mkdtemp(join(copies, '.new-'));
  await crane('pull', '--format=oci', `${repository}@${digest}`, join(unfinished, 'layout'));
  await writeFile(join(unfinished, 'digest'), digest);
  // Another process may have made the same one meanwhile.
  await rename(unfinished, copy).catch(() => rm(unfinished, { recursive: true }));
  for (const old of await readdir(copies)) {
    const { mtimeMs } = await stat(join(copies, old));
    if (Date.now() - mtimeMs > DAY_MS) await rm(join(copies, old), { recursive: true, force: true });
  }
}

async function copyPath(): Promise<string> {
  const trees = await run(['git', '-C', ROOT], 'rev-parse', ...SOURCES.map((path) => `HEAD:${path}`));
  const hash = createHash('sha256').update(trees).update(process.version).digest('hex');
  return join(dirname(binaries()), 'images', hash);
}

const crane = (...args: readonly string[]) => run([join(binaries(), 'crane')], ...args, '--insecure');

/** Builds the project's image as people do, and pushes it to a host of 127.0.0.1. */
async function buildProjectImage(directory: string, host: string): Promise<ProjectImage> {
  const { checkout, environment } = await prepareBuild(directory, host);
  const said = await runWith(environment, [join(checkout, 'hack/build.sh')], 'team', 'real');
  const [, repository, digest] = /^(\S+):real@(sha256:[0-9a-f]{64})\s*$/.exec(said) ?? [];
  if (repository === undefined || digest === undefined) throw new Error(`hack/build.sh printed ${said}`);
  return { repository, digest };
}

/** Pushes a base image of this machine's Node.js, and clones the last commit; `environment` is what hack/build.sh needs. */
export async function prepareBuild(directory: string, host: string) {
  const scratch = join(directory, 'scratch');
  const checkout = join(directory, 'checkout');
  const storage = join(directory, 'storage');
  await mkdir(scratch, { recursive: true });
  const registries = join(directory, 'registries.conf');
  await writeFile(registries, `[[registry]]\nlocation = "${host}"\ninsecure = true\n`);
  const buildah: Program = ['env', `TMPDIR=${scratch}`, 'buildah', '--root', storage, '--runroot', `${storage}-run`];
  let base: string;
  try {
    base = await pushBaseImage(buildah, join(directory, 'base'), host);
  } finally {
    await run(buildah, 'rmi', '--all', '--force');
  }
  // The commit, whatever becomes of the work tree meanwhile.
  await run(['git'], 'clone', '--quiet', ROOT, checkout);
  const environment = {
    ...{ TMPDIR: scratch, BUILDAH_ISOLATION: 'chroot', CONTAINERS_REGISTRIES_CONF: registries },
    ...{ BASE_IMAGE: base, DOCKER_REGISTRY: host },
  };
  return { base, checkout, environment };
}
