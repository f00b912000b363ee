import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { needsPosix } from './support/platforms.ts';

const SCRIPT = fileURLToPath(new URL('../hack/publish-release.sh', import.meta.url));

/** Stands in for gh: writes down what it is asked, and answers from the file `state` (a draft, published or nothing). */
const GH = `#!/usr/bin/env bash
echo "$*" >> "$GH_SAID"
case "$1 $2" in
  'release view') [[ ! -f $GH_BROKEN ]] || { cat "$GH_BROKEN" >&2; exit 1; }
    [[ -f $GH_STATE ]] && cat "$GH_STATE" || { echo 'release not found' >&2; exit 1; } ;;
  'release download') cat "$GH_PUBLISHED" ;;
  'release list') [[ ! -f $GH_LISTED ]] || cat "$GH_LISTED" ;;
  'release create') echo true > "$GH_STATE" ;;
  'release edit') echo false > "$GH_STATE" ;;
esac
`;

describe('hack/publish-release.sh', () => {
  let root: string;
  const files = (version = '0.2.0') => join(root, 'dist/release', version);
  const said = () =>
    existsSync(join(root, 'said')) ? readFileSync(join(root, 'said'), 'utf8').trim().split('\n') : [];

  beforeEach(function () {
    needsPosix(this, 'bash');
    // What it runs on in release.yml.
    if (process.platform !== 'linux') this.skip();
    root = mkdtempSync(join(tmpdir(), 'archaware-publish-'));
    mkdirSync(join(root, 'bin'));
    writeFileSync(join(root, 'bin/gh'), GH, { mode: 0o755 });
    mkdirSync(join(root, 'hack'));
    cpSync(SCRIPT, join(root, 'hack/publish-release.sh'));
    write('0.2.0');
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  function write(version: string): void {
    mkdirSync(files(version), { recursive: true });
    const published = ['archaware-controller.yaml', `archaware-controller-${version}.tgz`];
    for (const name of published) writeFileSync(join(files(version), name), `${name}\n`);
    const sum = (name: string) => createHash('sha256').update(`${name}\n`).digest('hex');
    writeFileSync(join(files(version), 'SHA256SUMS'), published.map((name) => `${sum(name)}  ${name}\n`).join(''));
    writeFileSync(join(files(version), 'SHA256SUMS.sigstore.json'), '{}');
    writeFileSync(join(files(version), 'release-notes.md'), '# 0.2.0\n');
  }

  function publish(...args: readonly string[]): SpawnSyncReturns<string> {
    const env = {
      PATH: `${join(root, 'bin')}${delimiter}${process.env.PATH}`,
      GH_SAID: join(root, 'said'),
      GH_STATE: join(root, 'state'),
      GH_BROKEN: join(root, 'broken'),
      GH_LISTED: join(root, 'listed'),
      GH_PUBLISHED: join(root, 'published'),
    };
    return spawnSync('bash', [join(root, 'hack/publish-release.sh'), ...args], { env, encoding: 'utf8' });
  }

  const upload =
    'release upload v0.2.0 --clobber archaware-controller.yaml archaware-controller-0.2.0.tgz SHA256SUMS SHA256SUMS.sigstore.json';
  const list = 'release list --exclude-drafts --exclude-pre-releases --limit 100 --json tagName --jq .[].tagName';
  const edit = 'release edit v0.2.0 --draft=false --verify-tag --title 0.2.0 --notes-file release-notes.md';

  it('makes a draft of an existing tag, uploads every file and only then publishes it', () => {
    expect(publish('v0.2.0').stderr).to.equal('');
    expect(said()).to.deep.equal([
      'release view v0.2.0 --json isDraft --jq .isDraft',
      'release create v0.2.0 --draft --verify-tag --title 0.2.0 --notes-file release-notes.md',
      upload,
      list,
      edit,
    ]);
  });

  it('goes on with the draft that an interrupted run has left, and gives it the text of this one', () => {
    writeFileSync(join(root, 'state'), 'true\n');
    expect(publish('0.2.0').status).to.equal(0);
    expect(said().slice(1)).to.deep.equal([upload, list, edit]);
  });

  it('changes nothing if GitHub does not say what is there', () => {
    writeFileSync(join(root, 'state'), 'false\n');
    writeFileSync(join(root, 'broken'), 'HTTP 502: Bad Gateway\n');
    const { status, stderr } = publish('0.2.0');
    expect([status, stderr]).to.deep.equal([
      1,
      'publish-release.sh: gh could not read the release v0.2.0: HTTP 502: Bad Gateway\n',
    ]);
    expect(said()).to.have.lengthOf(1);
  });

  for (const [published, flag] of [
    [['v0.1.9', 'v0.10.0'], ' --latest=false'],
    [['v0.1.9', 'v0.1.10'], ''],
  ] as const) {
    it(`is ${flag === '' ? '' : 'not '}the latest release where ${published.join(' and ')} are published`, () => {
      writeFileSync(join(root, 'listed'), `${published.join('\n')}\n`);
      expect(publish('0.2.0').status).to.equal(0);
      expect(said().at(-1)).to.equal(`${edit}${flag}`);
    });
  }

  it('publishes the key with which the release was signed', () => {
    writeFileSync(join(files(), 'cosign.pub'), '-----BEGIN PUBLIC KEY-----\n');
    expect(publish('0.2.0').status).to.equal(0);
    expect(said()[2]).to.equal(`${upload} cosign.pub`);
  });

  it('says that a version with a hyphen is a prerelease', () => {
    write('0.3.0-rc.1');
    expect(publish('0.3.0-rc.1').status).to.equal(0);
    expect(said()[1]).to.match(/^release create v0\.3\.0-rc\.1 .* --prerelease$/);
  });

  it('changes nothing that is published, and fails if that has other files', () => {
    writeFileSync(join(root, 'state'), 'false\n');
    cpSync(join(files(), 'SHA256SUMS'), join(root, 'published'));
    expect(publish('0.2.0').status).to.equal(0);
    writeFileSync(join(root, 'published'), `${'0'.repeat(64)}  archaware-controller.yaml\n`);
    const { status, stderr } = publish('0.2.0');
    expect([status, stderr]).to.deep.equal([
      1,
      'publish-release.sh: v0.2.0 is published already, with other files; nothing was changed\n',
    ]);
    expect(said().filter((line) => /upload|edit|create/.test(line))).to.deep.equal([]);
  });

  it('asks GitHub nothing if a file is not the one that was signed', () => {
    writeFileSync(join(files(), 'archaware-controller.yaml'), 'changed\n');
    const { status, stderr } = publish('0.2.0');
    expect(status).to.equal(1);
    expect(stderr).to.include('publish-release.sh: files in dist/release/0.2.0 differ from SHA256SUMS');
    expect(said()).to.deep.equal([]);
  });

  for (const [args, status, message] of [
    [[], 3, 'usage: hack/publish-release.sh VERSION'],
    [['0.2'], 3, '"0.2" is not a version'],
    [['../0.2.0'], 3, 'is not a version'],
    [['0.9.9'], 1, 'there is no dist/release/0.9.9: run hack/release.sh 0.9.9'],
  ] as const) {
    it(`answers [${args.join()}] with exit code ${status} and a reason`, () => {
      const result = publish(...args);
      expect(result.status).to.equal(status);
      expect(result.stderr).to.include(message);
    });
  }
});
