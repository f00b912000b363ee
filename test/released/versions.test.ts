import { cp, readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { checkVersions, pageWithVersion, withSection, withVersion } from '../../hack/release/versions.ts';
import { ROOT, type TestRelease, testRelease } from './release.ts';

describe('the version of the program', () => {
  it('is the same in every file of the repository that names it', async () => {
    const { version } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'));
    expect(await checkVersions(ROOT, version)).to.deep.equal([]);
  });
});

describe('the check of versions', () => {
  let release: TestRelease;
  before(async () => {
    release = await testRelease();
    for (const path of ['docs', 'package-lock.json'])
      await cp(ROOT + path, `${release.checkout}/${path}`, { recursive: true });
  });
  after(() => release.remove());

  it('finds nothing where all agree', async () => {
    expect(await checkVersions(release.checkout, release.version)).to.deep.equal([]);
  });

  it('names every file with another version, what it has, and what is expected', async () => {
    const problems = await checkVersions(release.checkout, '9.9.9');
    const files = new Set(problems.map((problem) => problem.split(':')[0]));
    expect([...files]).to.include.members([
      'package.json',
      'package-lock.json',
      'CHANGELOG.md',
      'README.md',
      'docs/install.md',
      'manifests/helm/archaware-controller/Chart.yaml',
      'manifests/kustomize/base/deployment.yaml',
      'manifests/archaware-controller.yaml',
      'manifests/archaware-controller-1.30.yaml',
      'manifests/archaware-controller-observe.yaml',
      'manifests/krew/archaware.yaml',
    ]);
    expect(problems).to.include(`package.json: version is ${release.version}, expected 9.9.9`);
    expect(problems).to.include('CHANGELOG.md: no section "## 9.9.9"');
  });

  const broken: readonly [file: string, from: string | RegExp, to: string, problem: RegExp][] = [
    [
      'package-lock.json',
      /"": \{\n +"name": "archaware-controller",\n +"version": "[^"]+"/,
      '"": {"version": "0.0.1"',
      /^package-lock.json: packages\[""\].version is 0.0.1, expected/,
    ],
    [
      'manifests/krew/archaware.yaml',
      /version: v.*/,
      'version: v0.0.1',
      /^manifests\/krew\/archaware.yaml: spec.version is 0.0.1/,
    ],
    [
      'manifests/helm/archaware-controller/Chart.yaml',
      /appVersion: .*/,
      'appVersion: [',
      /Chart.yaml: version is unreadable/,
    ],
    [
      'manifests/helm/archaware-controller/README.md',
      /$/,
      'charts/archaware-controller --version 0.0.1',
      /README.md: names charts\/archaware-controller --version 0.0.1, expected/,
    ],
    [
      'docs/install.md',
      /$/,
      'registry.invalid/archaware-controller:0.0.1',
      /^docs\/install.md: names archaware-controller:0.0.1, expected/,
    ],
    [
      'docs/install.md',
      /$/,
      'https://releases.invalid/archaware/v0.0.1/x',
      /^docs\/install.md: names https:\/\/releases.invalid\/archaware\/v0.0.1, expected/,
    ],
    [
      'docs/kubectl.md',
      /$/,
      './archaware-controller-npm-0.0.1.tgz',
      /^docs\/kubectl.md: names archaware-controller-npm-0.0.1, expected/,
    ],
    ['CHANGELOG.md', / \(2026-11-23\)/, '', /^CHANGELOG.md: the date of "## .*" is missing/],
    ['CHANGELOG.md', /### In short[\s\S]*?(?=\n## )/, '', /^CHANGELOG.md: the section "## .*" is empty/],
  ];
  for (const [file, from, to, problem] of broken) {
    it(`finds ${problem.source}`, async () => {
      const path = `${release.checkout}/${file}`;
      const before = await readFile(path, 'utf8');
      await writeFile(path, before.replace(from, to));
      const problems = await checkVersions(release.checkout, release.version);
      await writeFile(path, before);
      expect(problems.join('\n')).to.match(problem);
    });
  }
});

describe('a new version', () => {
  const rows: readonly [line: string, changed: string][] = [
    ['image: registry.invalid/archaware-controller:1.2.3', 'image: registry.invalid/archaware-controller:2.0.0'],
    [
      "'registry.example.com/you/archaware-controller, newTag: 1.2.3'",
      "'registry.example.com/you/archaware-controller, newTag: 2.0.0'",
    ],
    ['archaware-controller:1.2.30', 'archaware-controller:1.2.30'],
    ['archaware-controller:0.9.0', 'archaware-controller:0.9.0'],
    ['nginx:1.2.3', 'nginx:1.2.3'],
  ];
  for (const [line, changed] of rows) {
    it(`${line === changed ? 'leaves' : 'stands in'} ${line}`, () =>
      expect(withVersion(line, '1.2.3', '2.0.0')).to.equal(changed));
  }

  const pages: readonly [line: string, changed: string][] = [
    ['Version 1.2.3. The tests', 'Version 2.0.0. The tests'],
    ['git clone --branch v1.2.3 x', 'git clone --branch v2.0.0 x'],
    ['archaware-controller-npm-1.2.3.tgz', 'archaware-controller-npm-2.0.0.tgz'],
    ['ref: {tag: 1.2.3}', 'ref: {tag: 2.0.0}'],
    ['/vVERSION/1.2.3/', '/vVERSION/2.0.0/'],
    [String.raw`tags/v1\.2\.3$`, String.raw`tags/v2\.0\.0$`],
    ['11.2.3 1.2.30 1.2.3.4 1.2.3-rc.1', '11.2.3 1.2.30 1.2.3.4 1.2.3-rc.1'],
  ];
  for (const [line, changed] of pages) {
    it(`of a page ${line === changed ? 'leaves' : 'stands in'} ${line}`, () =>
      expect(pageWithVersion(line, '1.2.3', '2.0.0')).to.equal(changed));
  }

  const next = { from: '1.2.3', to: '2.0.0', date: '2027-01-02' };
  const LINKS = '\n[2.0.0]: https://source.invalid/archaware-controller/compare/v1.2.3...v2.0.0\n';

  it('gets what is unreleased as its section, and links', () => {
    const changelog = withSection('# Changelog\n\n## Unreleased\n\n- A.\n\n## 1.2.3 (2026-01-01)\n\n- B.\n', next);
    expect(changelog).to.equal(
      `# Changelog\n\n## Unreleased\n\n## 2.0.0 (2027-01-02)\n\n- A.\n\n## 1.2.3 (2026-01-01)\n\n- B.\n\n[unreleased]: https://source.invalid/archaware-controller/compare/v2.0.0...main${LINKS}`,
    );
    expect(withSection(changelog, next)).to.equal(changelog);
  });

  it('keeps the links of older versions', () => {
    const links = '[unreleased]: https://old.example/1.2.3...main\n[1.2.3]: https://old.example/1.2.3\n';
    const changelog = withSection(`## Unreleased\n\n- A.\n\n${links}`, next);
    expect(changelog).to.match(
      /\n\[unreleased\]: \S+\/v2\.0\.0\.\.\.main\n\[2\.0\.0\]: \S+\n\[1\.2\.3\]: https:\/\/old\.example\/1\.2\.3\n$/,
    );
  });

  for (const changelog of ['## Unreleased\n\n## 1.2.3 (2026-01-01)\n\n- B.\n', '## 1.2.3 (2026-01-01)\n\n- B.\n']) {
    it(`is refused if nothing is unreleased: ${JSON.stringify(changelog.slice(0, 20))}`, () => {
      expect(() => withSection(changelog, next)).to.throw('nothing to release');
    });
  }
});
