import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import {
  commitTime,
  identityProblems,
  installedProblems,
  packageProblems,
  registryProblems,
} from '../../hack/release/checks.ts';
import { readTagged, refusalOf } from '../../hack/release/push.ts';
import { folderForEach } from '../support/folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const digest = (digit: string) => `sha256:${digit.repeat(64)}`;

describe('the packages that a release is run with', () => {
  const locked = {
    packages: { '': { version: '0.2.0' }, a: { version: '1.0.0' }, b: { version: '2.0.0', optional: true } },
  };
  const rows: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['are those of the lockfile', { packages: { a: { version: '1.0.0' }, b: { version: '2.0.0' } } }, []],
    ['may lack one for another system', { packages: { a: { version: '1.0.0' } } }, []],
    ['may not be other ones', { packages: { a: { version: '1.0.1' } } }, ['(a)']],
    ['may not be more', { packages: { a: { version: '1.0.0' }, c: { version: '1.0.0' } } }, ['(c)']],
    ['may not be fewer', { packages: {} }, ['(a)']],
    ['may not be unknown', undefined, ['was not installed to the end: npm ci']],
  ];
  for (const [title, installed, expected] of rows) {
    it(title, () => {
      const problems = packageProblems(locked, installed);
      expect(problems).to.have.lengthOf(expected.length);
      for (const [position, text] of expected.entries()) expect(problems[position]).to.include(text);
    });
  }

  it('are read from a folder', async () => expect(await installedProblems(ROOT)).to.deep.equal([]));
});

describe('the time of a commit', () => {
  const { at } = folderForEach();
  const git = (words: readonly string[], input = '') =>
    execFileSync('git', ['-C', at(), ...words], { encoding: 'utf8', input }).trim();

  beforeEach(() => git(['init', '--quiet']));

  it('is read where git shows signatures, too', async () => {
    const tree = git(['mktree']);
    const signature = '-----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----';
    const who = 'A <a@example.com> 1700000000 +0900';
    const text = `tree ${tree}\nauthor ${who}\ncommitter ${who}\ngpgsig ${signature}\n\nfeat: signed\n`;
    const commit = git(['hash-object', '-t', 'commit', '-w', '--stdin'], text);
    git(['config', 'log.showSignature', 'true']);
    expect((await commitTime(at(), commit)).toISOString()).to.equal('2023-11-14T22:13:20.000Z');
  });
});

describe('the identity of a workflow', () => {
  const release = { source: 'https://github.example/acme/archaware-controller', tag: 'v0.2.0' };
  const workflow = 'acme/archaware-controller/.github/workflows/release.yml@refs/tags/v0.2.0';
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['is that of release.yml at the tag', workflow, true],
    ['is not a branch', workflow.replace('tags/v0.2.0', 'heads/main'), false],
    ['is not another tag', workflow.replace('v0.2.0', 'v0.2.1'), false],
    ['is not another workflow', workflow.replace('release.yml', 'ci.yml'), false],
    ['is not another repository', workflow.replace('acme', 'other'), false],
  ];
  for (const [title, ref, fits] of rows) {
    it(title, () => {
      const env = { GITHUB_SERVER_URL: 'https://github.example', GITHUB_WORKFLOW_REF: ref };
      const problems = identityProblems({ kind: 'keyless' }, env, release);
      expect(problems).to.have.lengthOf(fits ? 0 : 1);
      expect(identityProblems({ kind: 'key', key: 'cosign.key' }, env, release)).to.deep.equal([]);
    });
  }
});

describe('a tag in a registry', () => {
  const url = 'https://registry.invalid/v2/acme/archaware-controller/manifests/0.2.0';
  const head = `2026/11/23 18:37:10 HEAD request failed, falling back on GET: HEAD ${url}: unexpected status code 404 Not Found`;
  const rows: readonly (readonly [string, Parameters<typeof readTagged>, string, string | undefined])[] = [
    ['is absent', [1, '', `${head}\nError: GET ${url}: MANIFEST_UNKNOWN: manifest unknown\n`], 'absent', undefined],
    ['is absent, and so is its repository', [1, '', `Error: GET ${url}: NAME_UNKNOWN: unknown\n`], 'absent', undefined],
    ['has this digest', [0, `${digest('a')}\n`, ''], 'present', undefined],
    ['has another digest', [0, `${digest('b')}\n`, ''], 'present', 'already exists with another digest'],
    ['may not be read', [1, '', `${head}\nError: GET ${url}: DENIED: denied\n`], 'denied', 'could not be read'],
    ['cannot be read', [1, '', 'Error: Get "https://registry.invalid/v2/": no such host\n'], 'unknown', 'no such host'],
    ['is not what crane prints', [0, 'hello\n', ''], 'unknown', 'could not be read'],
  ];
  for (const [title, ended, kind, refusal] of rows) {
    it(`${title}: ${refusal === undefined ? 'may be written' : 'is refused'}`, () => {
      const found = readTagged(...ended);
      expect(found.kind).to.equal(kind);
      const text = refusalOf('registry.invalid/x', '0.2.0', found, digest('a'));
      if (refusal === undefined) expect(text).to.equal(undefined);
      else expect(text).to.include('registry.invalid/x:0.2.0').and.to.include(refusal);
    });
  }

  it('stops a release before the build if the registry cannot be reached, and is a note if it may not be read', () => {
    const answers = [
      { name: 'first', found: { kind: 'absent' } as const },
      { name: 'second', found: { kind: 'denied', reason: 'DENIED' } as const },
      { name: 'third', found: { kind: 'unknown', reason: 'no such host' } as const },
      { name: 'fourth', found: { kind: 'present', digest: digest('a') } as const },
    ];
    const { problems, notes } = registryProblems(answers);
    expect(problems.join()).to.match(/^third cannot be read: no such host/);
    expect(notes.join()).to.match(/^second may not be read, .* before its first push/);
  });
});
