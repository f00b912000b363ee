import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { makeNotes } from '../../hack/release/artifacts/notes.ts';
import { makeRecord, makeSums } from '../../hack/release/artifacts/sums.ts';
import { IMAGE_DIGEST, type TestRelease, testRelease, unreleasedLines } from './release.ts';

const DIGESTS = {
  image: IMAGE_DIGEST,
  chart: `sha256:${'b2'.repeat(32)}`,
  platforms: { 'linux/amd64': `sha256:${'c3'.repeat(32)}`, 'linux/arm64': `sha256:${'d4'.repeat(32)}` },
};

describe('the release notes', () => {
  let release: TestRelease;
  before(async () => {
    release = await testRelease();
  });
  after(() => release.remove());
  const notes = async (signer?: 'workflow' | 'key') => readFile(await makeNotes(release, DIGESTS, signer), 'utf8');

  it('begin with the steps of an update, then say what changed, and how to install and verify it', async () => {
    const text = await notes();
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).to.deep.equal([
      'Before you update',
      'In short',
      'What changed',
      'Install',
      'Digests',
      'Verify',
    ]);
    expect(text).to.match(/^## Before you update\n\n- \*\*Apply the new policies before the program\.\*\*\n/);
    expect(text).to.include('## What changed\n\n### Security\n\n- Text is escaped.').and.not.include('Everything.');
  });

  it('have the lines that install this release', async () => {
    const text = await notes();
    expect(text).to.include(`helm install archaware oci://${release.chart} --version ${release.version} `);
    expect(text).to.include(`kubectl apply -f ${release.downloads}/${release.tag}/archaware-controller.yaml`);
  });

  it('have every digest', async () => {
    const text = await notes();
    for (const digest of [DIGESTS.image, DIGESTS.chart, ...Object.values(DIGESTS.platforms)])
      expect(text).to.include(`\`${digest}\``);
  });

  it('say how to verify what the workflow signed', async () => {
    const text = (await notes()).replaceAll(/\\\n +/g, '');
    expect(text).to.include(
      `cosign verify ${release.image}@${IMAGE_DIGEST} --certificate-identity ${release.source}/.github/workflows/release.yml@refs/tags/${release.tag} --certificate-oidc-issuer https://token.actions.githubusercontent.com\n`,
    );
    expect(text).not.to.include('cosign.pub');
  });

  it('say how to verify what a key signed', async () => {
    const text = await notes('key');
    expect(text).to.include(`cosign verify ${release.image}@${IMAGE_DIGEST} --key cosign.pub --insecure-ignore-tlog\n`);
    expect(text).not.to.include('token.actions');
  });

  it('have real names and links', async () => {
    const text = await notes();
    expect(unreleasedLines(new Map([['notes', text]]))).to.deep.equal([]);
    expect(text).to.include(`[page](${release.source}/blob/${release.tag}/docs/install.md#helm)`);
  });

  it('say so if an update needs no steps', async () => {
    const changelog = `## ${release.version} (2026-11-23)\n\n- A fix.\n`;
    const other = await testRelease();
    await writeFile(`${other.checkout}/CHANGELOG.md`, changelog);
    const text = await readFile(await makeNotes(other, DIGESTS), 'utf8');
    await other.remove();
    expect(text).to.match(
      /^## Before you update\n\nThis version needs no steps of your own\.\n\n## What changed\n\n- A fix\.\n\n## Install/,
    );
  });

  it('are refused for a version without a section', async () => {
    const error = await makeNotes({ ...release, version: '9.9.9' }, DIGESTS).catch((reason: unknown) => reason);
    expect(String(error)).to.include('CHANGELOG.md: no section "## 9.9.9"');
  });
});

describe('the sums and the record of a release', () => {
  let release: TestRelease;
  let files: string[];
  before(async () => {
    release = await testRelease();
    await makeNotes(release, DIGESTS);
    await writeFile(`${release.out}/a.txt`, 'a\n');
    files = ['release-notes.md', 'a.txt'].map((name) => `${release.out}/${name}`);
  });
  after(() => release.remove());

  it('are checked by sha256sum, sorted, without folders', async () => {
    const file = await makeSums(release, files);
    const text = await readFile(file, 'utf8');
    expect(text.split('\n').map((line) => line.slice(66))).to.deep.equal(['a.txt', 'release-notes.md', '']);
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: release.out, stdio: 'pipe' });
  });

  it('name two files of one name as a mistake', async () => {
    const error = await makeSums(release, [...files, `${release.checkout}/a.txt`]).catch((reason: unknown) => reason);
    expect(String(error)).to.include('another file of the release has the name a.txt');
  });

  it('include a record for programs', async () => {
    const record = JSON.parse(await readFile(await makeRecord(release, DIGESTS, files), 'utf8'));
    expect(record).to.deep.include({
      version: release.version,
      tag: release.tag,
      commit: release.commit,
      created: '2026-11-23T18:21:50.000Z',
      image: { name: release.image, digest: IMAGE_DIGEST, platforms: DIGESTS.platforms },
      chart: { name: release.chart, digest: DIGESTS.chart },
    });
    expect(record.files).to.deep.include({
      'a.txt': 'sha256:87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7',
    });
  });
});
