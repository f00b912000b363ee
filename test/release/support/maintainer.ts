/** What a maintainer does for a release, in a clone of the repository. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { textAt } from '../../../hack/cluster/json.ts';
import type { Program } from '../../e2e/support/programs.ts';
import type { Finished } from '../../support/controller-process.ts';
import type { Place, RunOptions } from './place.ts';

/** Where the releases go: below the registry of the place. */
export const REPOSITORY = 'you';

/** A release that was made, as release.json names it. */
export type Released = {
  readonly version: string;
  /** dist/release/VERSION */
  readonly folder: string;
  /** HOST/you/archaware-controller, and the chart's name, without a tag. */
  readonly image: string;
  readonly chart: string;
  readonly imageDigest: string;
  readonly chartDigest: string;
  /** Everything that was said, and the last line of the standard output, which installs the release. */
  readonly said: string;
  readonly install: string;
};

export type Maintainer = {
  /** The clone. */
  readonly checkout: string;
  /** Runs hack/release.sh with these words, whatever its exit code. */
  release(words: readonly string[], options?: RunOptions): Promise<Finished>;
  /** Releases a version; throws with all that was said if that fails. */
  made(words: readonly [string, ...string[]], options?: RunOptions): Promise<Released>;
  git(...words: readonly string[]): Promise<string>;
  commit(message: string): Promise<void>;
};

export type Signing = { readonly key: string; readonly password: string };

/** Makes a pair of keys for cosign: cosign.key and cosign.pub in a folder. */
export async function makeKey(place: Place, folder: string): Promise<Signing> {
  const password = 'correct horse';
  const environment = { COSIGN_PASSWORD: password };
  await place.must(['cosign', 'generate-key-pair'], { cwd: folder, environment });
  return { key: join(folder, 'cosign.key'), password };
}

export function maintainerOf(
  place: Place,
  checkout: string,
  { base, source, signing }: { base: string; source: string; signing: Signing },
): Maintainer {
  const environment = {
    REGISTRY: place.host,
    REPOSITORY,
    SOURCE: source,
    BASE_IMAGE: base,
    COSIGN_KEY: signing.key,
    COSIGN_PASSWORD: signing.password,
    BUILDAH_ISOLATION: 'chroot',
  };
  const release: Maintainer['release'] = (words, options = {}) => {
    const program: Program = [join(checkout, 'hack/release.sh'), ...words];
    return place.run(program, { cwd: checkout, ...options, environment: { ...environment, ...options.environment } });
  };
  const git = (...words: readonly string[]) => place.must(['git', '-C', checkout, ...words]);
  return {
    checkout,
    release,
    git,
    async made(words, options) {
      const { code, stdout, stderr } = await release(words, options);
      if (code !== 0) throw new Error(`hack/release.sh ${words.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
      return releasedIn(join(checkout, 'dist/release', words[0]), stdout, stderr);
    },
    async commit(message) {
      await git('add', '--all');
      await git('commit', '--quiet', '--message', message);
    },
  };
}

async function releasedIn(folder: string, stdout: string, stderr: string): Promise<Released> {
  const written: unknown = JSON.parse(await readFile(join(folder, 'release.json'), 'utf8'));
  return {
    version: textAt(written, 'version'),
    folder,
    image: textAt(written, 'image', 'name'),
    chart: textAt(written, 'chart', 'name'),
    imageDigest: textAt(written, 'image', 'digest'),
    chartDigest: textAt(written, 'chart', 'digest'),
    said: stderr + stdout,
    install: stdout.trimEnd().split('\n').at(-1) ?? '',
  };
}

/** The sums of all published files, by name. */
export async function sumsOf({ folder }: Released): Promise<Readonly<Record<string, string>>> {
  const lines = (await readFile(join(folder, 'SHA256SUMS'), 'utf8')).trimEnd().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/ [ *]/).reverse()));
}

/** What the registry has: every tag of every repository, with the digest behind it. */
export async function tagsOf(place: Place): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  const repositories = (await place.must(['crane', 'catalog', place.host])).trim().split('\n');
  for (const repository of repositories.filter((name) => name !== '')) {
    const name = `${place.host}/${repository}`;
    const { stdout } = await place.run(['crane', 'ls', name]);
    for (const tag of stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '')) {
      found[`${repository}:${tag}`] = (await place.must(['crane', 'digest', `${name}:${tag}`])).trim();
    }
  }
  return found;
}

/** What the registry says of an image or a chart: the manifest or the index. */
export async function manifestOf(place: Place, name: string): Promise<unknown> {
  return JSON.parse(await place.must(['crane', 'manifest', name]));
}
