/** What somebody changes who can write to the registry and to the downloads, but has no key: docs/verify.md finds it. */
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Finished } from '../../support/controller-process.ts';
import { forgeAttestation, replaceIn } from '../support/forger.ts';
import { makeKey } from '../support/maintainer.ts';
import { VERSIONS } from '../support/names.ts';
import { blockWith, type Rehearsal, releaseBlocks } from '../support/rehearsal.ts';

const DOCUMENT = 'docs/verify.md';
const [FIRST] = VERSIONS;

export function theForgeries(there: () => Rehearsal): void {
  describe(`${DOCUMENT} refuses`, () => {
    /** The names, and then the block with the text: what a user runs. `digest` stands for what the first check has found. */
    async function check(...texts: readonly string[]): Promise<Finished> {
      const blocks = await releaseBlocks(DOCUMENT, there(), FIRST);
      const found = [blockWith(blocks, 'identity=('), ...texts.map((text) => blockWith(blocks, text))];
      return there().user(
        found.join('\n').replace(/^identity=/m, `digest=${there().release(FIRST).imageDigest}\nidentity=`),
      );
    }
    const IMAGE = '"$image:$version" | jq';
    const CHART = '"$chart:$version" | jq';
    const SBOM = '--type cyclonedx';
    const PROVENANCE = '--type slsaprovenance1';
    const FILES = 'cosign verify-blob';

    async function refused(what: string, checked: Promise<Finished>, says: RegExp): Promise<void> {
      const { code, stdout, stderr } = await checked;
      // Without the warning that the transparency log was not asked.
      const error = stderr
        .split('\n')
        .filter((line) => /^(Error|error|main\.go|sha256sum):/.test(line))
        .join(' ');
      console.log(`        ${what}: exit code ${code}, ${error.slice(0, 240)}`);
      expect(code, stdout + stderr).not.to.equal(0);
      expect(error, stderr).to.match(says);
    }

    /** Puts a tag back where it was. */
    async function backAfterwards(name: string, act: () => Promise<void>): Promise<void> {
      const { place } = there();
      const digest = (await place.must(['crane', 'digest', name])).trim();
      const repository = name.replace(/:[^:/]*$/, '');
      try {
        await act();
      } finally {
        await place.must(['crane', 'tag', `${repository}@${digest}`, name.slice(repository.length + 1)]);
      }
    }

    after(async () => {
      const { code, stdout, stderr } = await check(IMAGE, SBOM, PROVENANCE, CHART, FILES);
      expect(code, `the release itself passes again: ${stdout}${stderr}`).to.equal(0);
    });

    it('an image that was changed: another layer in the image of one platform, under the same tag', async () => {
      const { place, release, own } = there();
      const name = `${release(FIRST).image}:${FIRST}`;
      const folder = await mkdtemp(join(place.directory, 'forged-'));
      await mkdir(join(folder, 'app/dist'), { recursive: true });
      await writeFile(join(folder, 'app/dist/main.js'), 'console.log("mine now")\n');
      await place.must(['tar', '-cf', 'layer.tar', 'app'], { cwd: folder });
      await backAfterwards(name, async () => {
        const platform = `linux/${own}`;
        const forged = `${release(FIRST).image}:forged`;
        await place.must(
          ['crane', 'append', '--platform', platform, '--base', name, '--new_layer', 'layer.tar', '--new_tag', forged],
          { cwd: folder },
        );
        await place.must(['crane', 'index', 'filter', name, '--platform', 'linux/s390x', '--tag', name]);
        await place.must(['crane', 'index', 'append', name, '--manifest', forged, '--tag', name]);
        await refused('the index of another image', check(IMAGE), /no signatures found/);
        // The signatures of the real one, copied to where those of the forged one would be.
        const [real, now] = [release(FIRST).imageDigest, (await place.must(['crane', 'digest', name])).trim()];
        const tag = (digest: string) => `${release(FIRST).image}:${digest.replace(':', '-')}`;
        await place.must(['crane', 'copy', tag(real), tag(now)]);
        await refused(
          'with the signature of the real one',
          check(IMAGE),
          /artifact digest does not match any digest in statement/,
        );
      });
    });

    for (const [what, type, text, from, to] of [
      ['an SBOM that was changed', 'https://cyclonedx.org/bom', SBOM, '"version"', '"Version"'],
      [
        'a provenance that was changed',
        'https://slsa.dev/provenance/v1',
        PROVENANCE,
        'externalParameters',
        'externalparameters',
      ],
    ] as const) {
      it(`${what}, with the signature that it had`, async () => {
        const { place, release } = there();
        const { image, imageDigest } = release(FIRST);
        const list = `${image}:${imageDigest.replace(':', '-')}`;
        await backAfterwards(list, async () => {
          // As a control: what is pushed again unchanged passes.
          await forgeAttestation(place, list, type, (statement) => statement);
          const unchanged = await check(text);
          expect(unchanged.code, unchanged.stderr).to.equal(0);
          await forgeAttestation(place, list, type, (statement) => replaceIn(statement, from, to));
          await refused(what, check(text), /none of the attestations matched the predicate type/);
        });
      });
    }

    it('a chart that was changed, under the same version', async () => {
      const { place, release } = there();
      const { chart, folder } = release(FIRST);
      await backAfterwards(`${chart}:${FIRST}`, async () => {
        const forged = await mkdtemp(join(place.directory, 'forged-'));
        const script = `tar -xzf ${folder}/archaware-controller-${FIRST}.tgz
sed -i 's|^  repository: .*|  repository: registry.test/mine|' archaware-controller/values.yaml
helm package archaware-controller
helm push archaware-controller-${FIRST}.tgz oci://${chart.replace(/\/[^/]*$/, '')}`;
        await place.must(['bash', '-euo', 'pipefail', '-c', script], { cwd: forged });
        await refused('a chart with another image', check(CHART), /no signatures found/);
      });
    });

    it('an executable that was changed, and SHA256SUMS that were changed with it', async () => {
      const { place, release, offer } = there();
      const real = release(FIRST);
      const folder = await mkdtemp(join(place.directory, 'forged-'));
      await place.must(['cp', '-r', `${real.folder}/.`, folder]);
      const archive = join(folder, 'kubectl-archaware-linux-amd64.tar.gz');
      const bytes = await readFile(archive);
      bytes.writeUInt8((bytes.at(-20) ?? 0) ^ 1, bytes.length - 20);
      await writeFile(archive, bytes);
      offer({ ...real, folder });
      try {
        await refused('an archive that was changed', check(FILES), /1 computed checksum did NOT match/);
        await place.must(['bash', '-c', 'sha256sum $(cut -c 67- SHA256SUMS) > new && mv new SHA256SUMS'], {
          cwd: folder,
        });
        await refused('SHA256SUMS that fit it', check(FILES), /failed to verify signature/);
      } finally {
        offer(real);
      }
    });

    it('a signature by another key, and a release without one', async () => {
      const { user, release, place } = there();
      const { image } = release(FIRST);
      const verify = 'cosign verify --key cosign.pub --insecure-ignore-tlog';
      const folder = await mkdtemp(join(place.directory, 'stranger-'));
      await makeKey(place, folder);
      const stranger = await readFile(join(folder, 'cosign.pub'), 'utf8');
      await refused(
        'the key of a stranger',
        user(`${verify.replace('cosign.pub', 'stranger.pub')} ${image}:${FIRST}`, {
          files: { 'stranger.pub': stranger },
        }),
        /failed to verify signature/,
      );
      await refused('an image without a signature', user(`${verify} ${there().base}`), /no signatures found/);
    });
  });
}
