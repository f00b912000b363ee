/** What docs/verify.md tells users to run. */
import { expect } from 'chai';
import { VERSIONS } from '../support/names.ts';
import { type Rehearsal, releaseBlocks } from '../support/rehearsal.ts';

const DOCUMENT = 'docs/verify.md';

export function theVerification(there: () => Rehearsal): void {
  describe(DOCUMENT, () => {
    for (const version of VERSIONS) {
      it(`verifies the image, its SBOM and provenance, the chart and the files of ${version}`, async () => {
        const blocks = await releaseBlocks(DOCUMENT, there(), version);
        expect(blocks.join('\n'))
          .to.match(/cosign verify /)
          .and.to.match(/cosign verify-attestation .*cyclonedx/);
        expect(blocks.join('\n'))
          .to.match(/cosign verify-attestation .*slsaprovenance1/)
          .and.to.match(/cosign verify-blob /);
        const script = blocks.join('\n');
        const { code, stdout, stderr } = await there().user(script);
        expect(code, stdout + stderr).to.equal(0);
        const { imageDigest, chartDigest } = there().release(version);
        expect(stdout).to.include(imageDigest).and.to.include(chartDigest);
        if (version === VERSIONS[0]) console.log(shortened(stdout));
      });
    }

    it('finds the commit of the tag and the base image in the provenance, and Node.js in the SBOM', async () => {
      const { maintainer, base, must } = there();
      const [version] = VERSIONS;
      const blocks = await releaseBlocks(DOCUMENT, there(), version);
      const said = await must([...blocks, 'echo; cat provenance.json; echo; cat sbom.cdx.json'].join('\n'));
      const commit = (await maintainer.git('rev-parse', `v${version}^{commit}`)).trim();
      const [, digest = ''] = base.split('@');
      expect(said).to.include(commit);
      expect(said).to.include(digest.replace('sha256:', ''));
      expect(said).to.match(/"name": ?"node(\.js)?"/i);
    });
  });
}

/** Without the long middle: one line for each package. */
const shortened = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .filter((line) => !/^[\w./@-]+ \d+\.\d+\.\d+$/.test(line))
    .map((line) => `        ${line.slice(0, 160)}`)
    .join('\n');
