import { expect } from 'chai';
import { annotationsOf, argumentOf, readBaseImage } from '../../hack/release/image/build.ts';
import { provenance, readBuilder } from '../../hack/release/provenance.ts';
import { predicatesOf, signingFlags, verifyingFlags, workflowIdentity } from '../../hack/release/sign.ts';
import type { Release } from '../../hack/release/types.ts';

const SOURCE = 'https://github.example/acme/archaware-controller';
const RELEASE: Release = {
  version: '0.2.0',
  tag: 'v0.2.0',
  commit: 'c'.repeat(40),
  created: new Date('2026-11-23T12:00:00Z'),
  registry: 'registry.example',
  repository: 'acme',
  image: 'registry.example/acme/archaware-controller',
  chart: 'registry.example/acme/charts/archaware-controller',
  source: SOURCE,
  downloads: `${SOURCE}/releases/download`,
  checkout: '/checkout',
  out: '/out',
  work: '/work',
};
const BASE = { name: 'docker.io/library/node:24-trixie-slim', digest: `sha256:${'b'.repeat(64)}` };

describe('the provenance of an image', () => {
  const facts = { base: BASE, lockfile: 'd'.repeat(64), tools: { node: 'v24.21.0' } };
  const actions = {
    GITHUB_ACTIONS: 'true',
    GITHUB_SERVER_URL: 'https://github.example',
    GITHUB_REPOSITORY: 'acme/archaware-controller',
    GITHUB_WORKFLOW_REF: 'acme/archaware-controller/.github/workflows/release.yml@refs/tags/v0.2.0',
    GITHUB_RUN_ID: '7',
    GITHUB_RUN_ATTEMPT: '2',
  };

  it('names the commit, the base image and the lockfile by digest', () => {
    const made = provenance(RELEASE, { ...facts, builder: { kind: 'local' } });
    expect(made).to.have.nested.property('buildDefinition.externalParameters.ref', 'refs/tags/v0.2.0');
    expect(made).to.have.deep.nested.property('buildDefinition.resolvedDependencies', [
      { uri: `git+${SOURCE}@refs/tags/v0.2.0`, digest: { gitCommit: RELEASE.commit } },
      { uri: `oci://${BASE.name}`, digest: { sha256: 'b'.repeat(64) } },
      { uri: `git+${SOURCE}@refs/tags/v0.2.0#package-lock.json`, digest: { sha256: 'd'.repeat(64) } },
    ]);
  });

  it('names the workflow that built, as its certificate does, and is the same if the run is repeated', () => {
    const made = provenance(RELEASE, { ...facts, builder: readBuilder(actions) });
    expect(made).to.have.deep.property('runDetails', {
      builder: { id: workflowIdentity(RELEASE) },
      metadata: { invocationId: `${SOURCE}/actions/runs/7` },
    });
    const again = provenance(RELEASE, { ...facts, builder: readBuilder({ ...actions, GITHUB_RUN_ATTEMPT: '3' }) });
    expect(again).to.deep.equal(made);
  });

  it('says that it was built on a local machine, and not who', () => {
    const made = provenance(RELEASE, { ...facts, builder: readBuilder({ USER: 'me', HOSTNAME: 'my-laptop' }) });
    expect(made).to.have.deep.property('runDetails', {
      builder: { id: `${SOURCE}/blob/v0.2.0/hack/release.sh#on-a-local-machine` },
    });
    expect(JSON.stringify(made)).not.to.include('my-laptop');
  });
});

describe('the annotations of a released image', () => {
  it('say what it is, from which commit, of which time, and what it stands on', () => {
    expect(
      annotationsOf(RELEASE, BASE, { name: 'archaware-controller', description: 'What it does', license: 'MIT' }),
    ).to.deep.include({
      'org.opencontainers.image.version': '0.2.0',
      'org.opencontainers.image.revision': RELEASE.commit,
      'org.opencontainers.image.created': '2026-11-23T12:00:00Z',
      'org.opencontainers.image.source': SOURCE,
      'org.opencontainers.image.title': 'archaware-controller',
      'org.opencontainers.image.description': 'What it does',
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.base.name': BASE.name,
      'org.opencontainers.image.base.digest': BASE.digest,
    });
  });

  it('name the base image by digest', () => {
    const reference = argumentOf(`# ARG BASE_IMAGE=no\nARG BASE_IMAGE=${BASE.name}@${BASE.digest}\nFROM x\n`);
    expect(readBaseImage(reference)).to.deep.equal(BASE);
    expect(() => readBaseImage('node:24')).to.throw('the base image "node:24" has no digest');
  });
});

describe('cosign', () => {
  const offline = { signingConfig: '/s', trustedRoot: '/t' };
  const key = { kind: 'key', key: 'cosign.key', publicKey: 'cosign.pub', offline } as const;
  const keyless = { kind: 'keyless', identity: workflowIdentity(RELEASE) } as const;

  it('signs with a key without any public service', () => {
    expect(signingFlags(key)).to.deep.equal([
      ...['--yes', '--key', 'cosign.key'],
      ...['--signing-config', '/s', '--trusted-root', '/t'],
    ]);
    expect(verifyingFlags(key)).to.deep.equal(['--key', 'cosign.pub', '--insecure-ignore-tlog']);
  });

  it('signs as the workflow of the tag, and accepts no other workflow, tag or issuer', () => {
    expect(signingFlags(keyless)).to.deep.equal(['--yes']);
    expect(verifyingFlags(keyless)).to.deep.equal([
      ...['--certificate-identity', `${SOURCE}/.github/workflows/release.yml@refs/tags/v0.2.0`],
      ...['--certificate-oidc-issuer', 'https://token.actions.githubusercontent.com'],
    ]);
  });

  it('prints the attestations that it verified, one on each line', () => {
    const envelope = (statement: object) =>
      JSON.stringify({ payload: Buffer.from(JSON.stringify(statement)).toString('base64'), signatures: [] });
    const lines = [
      '',
      'Verification for x --',
      envelope({ predicate: { a: 1 } }),
      envelope({ predicate: { b: 2 } }),
      '',
    ];
    expect(predicatesOf(lines.join('\n'))).to.deep.equal([{ a: 1 }, { b: 2 }]);
  });
});
