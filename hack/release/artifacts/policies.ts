/** The policies that admit only a signed image, with the names of the release in them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pageOf, withRealNames } from '../names.ts';
import type { Release } from '../types.ts';

/** The files of docs/examples that a release has. */
export const POLICIES = ['kyverno.yaml', 'sigstore-policy-controller.yaml'] as const;

/** Writes the policies to `release.out` and returns their paths. */
export async function makePolicies(release: Release): Promise<string[]> {
  await mkdir(release.out, { recursive: true });
  return Promise.all(
    POLICIES.map(async (name) => {
      const text = await readFile(join(release.checkout, 'docs/examples', name), 'utf8');
      const file = join(release.out, name);
      await writeFile(file, releasedPolicy(text, release));
      return file;
    }),
  );
}

/** Returns a policy as released: its comments lead to the pages of the release. */
function releasedPolicy(text: string, release: Release): string {
  return withRealNames(text, release).replaceAll(/(?<![\w/])docs\/[\w./-]*\w/g, (path) => pageOf(release, path));
}
