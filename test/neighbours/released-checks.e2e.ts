import { expect } from 'chai';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { attempt, tool } from '../../hack/programs.ts';
import { signKeyless, type Trust } from './support/keyless.ts';
import { CANDIDATES, needsReleaseTools, pushCandidates } from './support/released.ts';

const WORKFLOW = 'https://source.invalid/archaware-controller/.github/workflows/release.yml@refs/tags';
const ISSUER = ['--certificate-oidc-issuer', 'https://token.actions.githubusercontent.com'];
const WITHOUT_SIGNATURE = 'unsigned';
const WITHOUT_PROVENANCE = 'unproven';

/** With the identity of release 0.2.0 and an authority of the test's own, in the place of the public Sigstore. */
describe('the checks of docs/verify.md, with an identity', function () {
  this.timeout(60_000);
  let registry: Registry;
  let trust: Trust;
  let image: (tag: string) => string;

  before(async function () {
    needsReleaseTools(this);
    registry = await startRegistry();
    const { reference, attestations } = await pushCandidates(registry);
    image = (tag) => reference(tag).replace(/:[^:@]+@/, '@');
    trust = await signKeyless(attestations);
  });
  after(async () => {
    await trust?.stop();
    await registry?.remove();
  });

  async function cosign(command: readonly string[], tag: string, version = 'v0.2.0') {
    const identity = ['--certificate-identity', `${WORKFLOW}/${version}`, ...ISSUER];
    const args = [...command, '--trusted-root', trust.trustedRoot, ...identity, image(tag)];
    const { code, stderr } = await attempt(tool('cosign'), args);
    return { passed: code === 0, stderr };
  }
  const signature = ['verify-attestation', '--type', 'https://sigstore.dev/cosign/sign/v1'];
  const provenance = ['verify-attestation', '--type', 'slsaprovenance1'];

  for (const { tag, what } of CANDIDATES.filter((one) => !one.platform)) {
    const right = tag === '0.2.0';
    it(`${right ? 'accept' : 'refuse'} an image ${what}`, async () => {
      const signed = await cosign(signature, tag);
      const proven = await cosign(provenance, tag);
      expect(signed.passed, signed.stderr).to.equal(right || tag === WITHOUT_PROVENANCE);
      expect(proven.passed, proven.stderr).to.equal(right || tag === WITHOUT_SIGNATURE);
    });
  }

  it('refuse a release under the version of another', async () => {
    const { passed, stderr } = await cosign(['verify'], '0.2.0', 'v0.2.1');
    expect(passed).to.equal(false);
    expect(stderr).to.contain('expected SAN value').and.to.contain('got "');
  });

  it('take any statement for a signature, if they are `cosign verify` alone', async () => {
    expect((await cosign(['verify'], WITHOUT_SIGNATURE)).passed).to.equal(true);
    const { passed, stderr } = await cosign(['verify'], 'replayed');
    expect(passed).to.equal(false);
    expect(stderr).to.contain('artifact digest does not match any digest in statement');
  });
});
