import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { packPackage } from '../../hack/release/artifacts/npm.ts';
import { type TestRelease, testRelease, textsIn, unreleasedLines } from './release.ts';

describe('the npm package of a release', () => {
  let release: TestRelease;
  let file: string;
  let files: Map<string, string>;

  before(async () => {
    release = await testRelease();
    file = await packPackage(release);
    files = await textsIn(file);
  });
  after(() => release.remove());

  it('holds the bundle and what npm always adds', () => {
    expect(file).to.equal(join(release.out, `archaware-controller-npm-${release.version}.tgz`));
    expect([...files.keys()]).to.have.members(
      ['LICENSE', 'README.md', 'dist/main.js', 'package.json'].map((path) => `package/${path}`),
    );
  });

  it('may be published, with provenance, and installs and runs nothing else', () => {
    const found = JSON.parse(files.get('package/package.json') ?? '');
    expect(found).to.deep.include({
      name: 'archaware-controller',
      version: release.version,
      license: 'MIT',
      bin: { archaware: 'dist/main.js' },
      // npm compares it with the source of the provenance.
      repository: { type: 'git', url: `git+${release.source}.git` },
      publishConfig: { access: 'public', provenance: true },
    });
    expect(found).not.to.have.any.keys('private', 'scripts', 'dependencies', 'devDependencies', 'overrides');
  });

  it('has real names in its page', () => {
    files.delete('package/dist/main.js');
    expect(unreleasedLines(files)).to.deep.equal([]);
    expect(files.get('package/README.md')).to.include(`](${release.source}/blob/${release.tag}/docs/install.md`);
  });

  it('runs with npx, without a network', async () => {
    const cache = await mkdtemp(join(tmpdir(), 'archaware-npx-'));
    try {
      const version = execFileSync('npx', ['--yes', '--offline', '--package', file, 'archaware', '--version'], {
        encoding: 'utf8',
        env: { ...process.env, npm_config_cache: cache },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      expect(version.trim()).to.equal(release.version);
    } finally {
      await rm(cache, { recursive: true });
    }
  });
});
