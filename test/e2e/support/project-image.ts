import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pushBaseImage } from './base-image.ts';
import { type Program, run, runWith } from './programs.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What the image is built with. */
export const imageBuilders = ['buildah', 'git'] as const;

/** Where hack/build.sh has pushed the image of the last commit. */
export type ProjectImage = { readonly repository: string; readonly digest: string };

/** Builds the project's image as people do, on a base image of this machine's Node.js, and pushes it to a host of 127.0.0.1. */
export async function buildProjectImage(directory: string, host: string): Promise<ProjectImage> {
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
  const said = await runWith(environment, [join(checkout, 'hack/build.sh')], 'team', 'real');
  const [, repository, digest] = /^(\S+):real@(sha256:[0-9a-f]{64})\s*$/.exec(said) ?? [];
  if (repository === undefined || digest === undefined) throw new Error(`hack/build.sh printed ${said}`);
  return { repository, digest };
}
