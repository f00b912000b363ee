/** The files of a release: the npm package, the Krew manifest, the executables. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { listAt, textAt } from '../../../hack/cluster/json.ts';
import { sumsOf } from '../support/maintainer.ts';
import { VERSIONS } from '../support/names.ts';
import type { Rehearsal } from '../support/rehearsal.ts';

export function theFiles(there: () => Rehearsal): void {
  const [first] = VERSIONS;
  const url = (version: string) => `${there().source}/releases/download/v${version}`;

  describe('the files', () => {
    it('are all there, and SHA256SUMS has the sum of each', async () => {
      const { must, release } = there();
      const names = Object.keys(await sumsOf(release(first)));
      const executables = ['linux', 'darwin', 'windows'].flatMap((os) =>
        ['amd64', 'arm64'].map((architecture) => `kubectl-archaware-${os}-${architecture}.tar.gz`),
      );
      expect(names).to.include.members([
        ...['archaware-controller.yaml', 'archaware-controller-1.30.yaml', 'archaware-controller-observe.yaml'],
        ...[
          'publish.yaml',
          'webhook.yaml',
          `archaware-controller-${first}.tgz`,
          `archaware-controller-npm-${first}.tgz`,
        ],
        ...[
          `archaware-controller-${first}.cdx.json`,
          `archaware-controller-${first}.provenance.json`,
          'archaware.yaml',
        ],
        ...executables,
      ]);
      const script = `curl -fsSL --remote-name-all ${['SHA256SUMS', ...names].map((name) => `${url(first)}/${name}`).join(' ')}
sha256sum --check --strict --quiet SHA256SUMS`;
      await must(script);
    });

    it('run as an executable, from the archive of this platform', async () => {
      const { must, own } = there();
      const archive = `kubectl-archaware-linux-${own}.tar.gz`;
      const script = `curl -fsSL -O ${url(first)}/${archive} -O ${url(first)}/SHA256SUMS
sha256sum --check --strict --quiet --ignore-missing SHA256SUMS
tar -xzf ${archive}
./kubectl-archaware --version
PATH=$PWD:$PATH kubectl archaware --version`;
      expect(await must(script)).to.equal(`${first}\n${first}\n`);
    });

    describe('for Krew', () => {
      let manifest: unknown;
      before(async () => {
        manifest = parse(await readFile(join(there().release(first).folder, 'archaware.yaml'), 'utf8'));
      });

      it('lead to archives that can be downloaded, with the sum that the manifest has', async () => {
        const { must } = there();
        for (const platform of listAt(manifest, 'spec', 'platforms')) {
          const sum = await must(`curl -fsSL ${textAt(platform, 'uri')} | sha256sum | cut -d ' ' -f 1`);
          expect(sum.trim()).to.equal(textAt(platform, 'sha256'));
        }
      });
    });

    it('hold the same bundle as the image', async () => {
      const { must, release, place } = there();
      const { image, folder } = release(first);
      const layer = await must(
        `tar -xzOf ${folder}/archaware-controller-npm-${first}.tgz package/dist/main.js | sha256sum`,
      );
      const exported = await place.must([
        'sh',
        '-c',
        `crane export ${image}:${first} - | tar -xOf - app/dist/main.js | sha256sum`,
      ]);
      expect(exported).to.equal(layer);
    });
  });
}
