import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { makeChart } from '../../hack/release/artifacts/chart.ts';
import { makeManifests } from '../../hack/release/artifacts/manifests.ts';
import { packPackage } from '../../hack/release/artifacts/npm.ts';
import type { Release } from '../../hack/release/types.ts';
import { IMAGE_DIGEST, testRelease } from './release.ts';

describe('what a release makes is the same in every directory and with every umask:', () => {
  const before = process.umask();
  afterEach(() => process.umask(before));

  const rows: readonly (readonly [what: string, make: (release: Release) => Promise<readonly string[]>])[] = [
    ['the chart', async (release) => [`${(await makeChart(release, IMAGE_DIGEST)).layout}/index.json`]],
    ['the manifests', (release) => makeManifests(release, IMAGE_DIGEST)],
    ['the npm package', async (release) => [await packPackage(release)]],
  ];
  for (const [what, make] of rows) {
    it(what, async () => {
      const made: string[][] = [];
      for (const umask of [0o022, 0o077]) {
        const release = await testRelease();
        process.umask(umask);
        made.push(await Promise.all((await make(release)).map((file) => readFile(file, 'base64'))));
        await release.remove();
      }
      expect(made[0]).to.deep.equal(made[1]).and.have.length.above(0);
    });
  }
});
