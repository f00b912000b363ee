/** Builds the image of a release into an OCI image layout. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { run } from '../../programs.ts';
import type { Release } from '../types.ts';
import { type Annotations, annotateLayout, type Layout } from './layout.ts';

/** An image, by digest. */
export type BaseImage = {
  /** Without the digest. */
  readonly name: string;
  readonly digest: string;
};

/** Builds the image for all platforms with hack/image/build.sh and annotates it. The same commit and builder give the same digests. */
export async function buildImage(release: Release, base: BaseImage): Promise<Layout> {
  const context = join(release.work, 'context');
  const archive = `${context}.tar`;
  const layout = join(release.work, 'image');
  await mkdir(context);
  // Without node_modules and .git.
  await run('git', ['-C', release.checkout, 'archive', '--output', archive, release.commit]);
  await run('tar', ['-xf', archive, '-C', context]);
  const about = packageFields.parse(JSON.parse(await readFile(join(release.checkout, 'package.json'), 'utf8')));
  const annotations = annotationsOf(release, base, about);
  const flags = ['--build-arg', `BASE_IMAGE=${base.name}@${base.digest}`];
  // The Dockerfile has the labels that are the same for every build. The name of the base image has its digest there.
  for (const name of ['version', 'revision', 'created', 'source', 'url', 'documentation']) {
    flags.push('--label', `${PREFIX}${name}=${annotations[PREFIX + name] ?? ''}`);
  }
  const env = { SOURCE_DATE_EPOCH: String(release.created.getTime() / 1000) };
  await run(join(release.checkout, 'hack/image/build.sh'), [context, `oci:${layout}`, ...flags], { env, loud: true });
  return annotateLayout(layout, annotations);
}

const packageFields = z.object({ name: z.string(), description: z.string(), license: z.string() });

const PREFIX = 'org.opencontainers.image.';

/** The annotations of image-spec, annotations.md; title, description and licenses are those of package.json. */
export function annotationsOf(
  { version, tag, commit, created, source }: Pick<Release, 'version' | 'tag' | 'commit' | 'created' | 'source'>,
  base: BaseImage,
  { name: title, description, license: licenses }: z.infer<typeof packageFields>,
): Annotations {
  const values = {
    title,
    description,
    version,
    revision: commit,
    created: `${created.toISOString().slice(0, 19)}Z`,
    source,
    url: source,
    documentation: `${source}/blob/${tag}/README.md`,
    licenses,
    'base.name': base.name,
    'base.digest': base.digest,
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [PREFIX + name, value]));
}

/** Reads which image the build begins with: BASE_IMAGE, or the one that the Dockerfile names. Throws if there is no digest. */
export async function baseImageOf(checkout: string, given: string | undefined): Promise<BaseImage> {
  return readBaseImage(given ?? argumentOf(await readFile(join(checkout, 'Dockerfile'), 'utf8')));
}

/** The default of `ARG BASE_IMAGE` in a Dockerfile. */
export function argumentOf(dockerfile: string): string {
  return /^ARG BASE_IMAGE=(\S+)$/m.exec(dockerfile)?.[1] ?? '';
}

/** Splits NAME@DIGEST. Throws if there is no digest. */
export function readBaseImage(reference: string): BaseImage {
  const [, name, digest] = /^([^@]+)@(sha256:[0-9a-f]{64})$/.exec(reference) ?? [];
  if (name === undefined || digest === undefined) {
    throw new Error(`the base image "${reference}" has no digest; expected NAME@sha256:…`);
  }
  return { name, digest };
}
