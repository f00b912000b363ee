/** hack/release.sh with something wrong: it says all that is wrong, and the registry stays as it was. CI runs this, without cosign. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { isInstalled } from '../../e2e/support/programs.ts';
import { type Maintainer, maintainerOf, tagsOf } from '../support/maintainer.ts';
import { cloneHead, type Place, startPlace } from '../support/place.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const VERSION = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).version;
const IMAGE = 'registry.invalid/archaware-controller';
const NOBODY = `registry.test:1/base/node@sha256:${'0'.repeat(64)}`;

type Refusal = {
  readonly what: string;
  /** Does it, in a clone whose last commit has the tag. */
  readonly given?: (maintainer: Maintainer) => Promise<void>;
  readonly words?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly code?: number;
  readonly says: RegExp;
};

const edit = async ({ checkout }: Maintainer, name: string, from: string | RegExp, to: string) => {
  const path = join(checkout, name);
  const before = await readFile(path, 'utf8');
  const after = before.replace(from, to);
  if (before === after) throw new Error(`${name} has no ${from}`);
  await writeFile(path, after);
};
/** Commits an edit, and moves the tag there. */
const changed = (name: string, from: string | RegExp, to: string) => async (maintainer: Maintainer) => {
  await edit(maintainer, name, from, to);
  await maintainer.commit('chore: something is wrong');
  await maintainer.git('tag', '--force', `v${VERSION}`);
};

const REFUSALS: readonly Refusal[] = [
  { what: 'no version', words: [], code: 3, says: /^usage: hack\/release\.sh/ },
  { what: 'a version that is not one', words: ['latest'], code: 3, says: /got the version "latest", expected/ },
  { what: 'a flag that it does not know', words: [VERSION, '--force'], code: 3, says: /got --force, expected/ },
  {
    what: 'a file that is not committed',
    given: (maintainer) => edit(maintainer, 'README.md', /^#/, '# Changed:'),
    says: /README\.md/,
  },
  {
    what: 'a new file that is not committed',
    given: ({ checkout }) => writeFile(join(checkout, 'src/new.ts'), ''),
    says: /src\/new\.ts/,
  },
  {
    what: 'no tag',
    given: async ({ git }) => void (await git('tag', '--delete', `v${VERSION}`)),
    says: new RegExp(`tag v${VERSION.replaceAll('.', '\\.')}`),
  },
  {
    what: 'a tag of another commit',
    given: async (maintainer) => {
      await edit(maintainer, 'README.md', /^#/, '# Changed:');
      await maintainer.commit('docs: after the tag');
    },
    says: new RegExp(`v${VERSION.replaceAll('.', '\\.')}`),
  },
  {
    what: 'another version in package.json',
    given: changed('package.json', `"version": "${VERSION}"`, '"version": "0.1.9"'),
    says: /package\.json.*0\.1\.9/s,
  },
  {
    what: 'another version in the chart',
    given: changed('manifests/helm/archaware-controller/Chart.yaml', /^version: .*$/m, 'version: 0.1.9'),
    says: /Chart\.yaml.*0\.1\.9/s,
  },
  {
    what: 'another version in a manifest',
    given: changed('manifests/archaware-controller.yaml', `${IMAGE}:${VERSION}`, `${IMAGE}:0.1.9`),
    says: /manifests\/archaware-controller\.yaml.*0\.1\.9/s,
  },
  {
    what: 'no section in the CHANGELOG',
    given: changed('CHANGELOG.md', new RegExp(`^## \\[?${VERSION}.*$`, 'm'), '## Soon'),
    says: /CHANGELOG\.md/,
  },
  { what: 'no REGISTRY', environment: { REGISTRY: '' }, says: /REGISTRY is not set/ },
  {
    what: 'a REGISTRY with a path',
    environment: { REGISTRY: 'registry.test/you' },
    says: /REGISTRY is "registry\.test\/you"/,
  },
  { what: 'no REPOSITORY', environment: { REPOSITORY: '' }, says: /REPOSITORY is not set/ },
  { what: 'a SOURCE with a password', environment: { SOURCE: 'https://me:secret@x.test/y' }, says: /SOURCE/ },
  { what: 'a base image without a digest', environment: { BASE_IMAGE: 'x.test/node:24' }, says: /BASE_IMAGE/ },
  { what: 'no key, outside of GitHub Actions', environment: { COSIGN_KEY: '' }, says: /COSIGN_KEY is not set/ },
  { what: 'a registry that does not answer', environment: { REGISTRY: 'registry.test:1' }, says: /registry\.test:1/ },
];

describe(`hack/release.sh ${VERSION} refuses, and pushes nothing:`, function () {
  this.timeout(120_000);
  let place: Place;
  let maintainer: Maintainer;
  let tags: Readonly<Record<string, string>>;
  let commit: string;
  let tools: Readonly<Record<string, string>>;

  before(async function () {
    const missing = ['git', 'unshare'].filter((name) => !isInstalled(name));
    if (process.getuid?.() !== 0) missing.push('the rights of root');
    if (missing.length > 0 && process.env.CI !== undefined) throw new Error(`missing: ${missing.join(', ')}`);
    if (missing.length > 0) return this.skip();
    place = await startPlace();
    const checkout = await cloneHead(ROOT, join(place.directory, 'maintainer'));
    const signing = { key: join(place.directory, 'cosign.key'), password: '' };
    await writeFile(signing.key, 'only its path is looked at before anything is built');
    // A folder of tools with crane alone: whether cosign is built makes no difference here.
    tools = { ARCHAWARE_BIN: join(place.directory, 'tools') };
    await mkdir(join(place.directory, 'tools/release'), { recursive: true });
    await symlink(join(binaries(), 'crane'), join(place.directory, 'tools/release/crane'));
    maintainer = maintainerOf(place, checkout, { base: NOBODY, source: 'https://source.test/you/archaware', signing });
    commit = (await maintainer.git('rev-parse', 'HEAD')).trim();
    tags = await tagsOf(place);
  });
  after(() => place?.remove());
  beforeEach(async () => {
    await maintainer.git('reset', '--quiet', '--hard', commit);
    await maintainer.git('clean', '--quiet', '--force', '-d');
    await maintainer.git('tag', '--force', `v${VERSION}`);
  });

  for (const { what, given, words = [VERSION], environment = {}, code = 1, says } of REFUSALS) {
    it(what, async () => {
      await given?.(maintainer);
      const refused = await maintainer.release(words, { environment: { ...tools, ...environment } });
      expect(refused.stderr, refused.stdout).to.match(says);
      if (words.length > 0) expect(refused.stderr).to.match(/^release\.sh: /m);
      expect(refused.code, refused.stderr).to.equal(code);
      expect(await tagsOf(place)).to.deep.equal(tags);
    });
  }

  it('several things at once, all of them named', async () => {
    await edit(maintainer, 'README.md', /^#/, '# Changed:');
    const { stderr, code } = await maintainer.release([VERSION], {
      environment: { ...tools, REGISTRY: '', COSIGN_KEY: '' },
    });
    expect(stderr)
      .to.match(/README\.md/)
      .and.to.match(/REGISTRY is not set/)
      .and.to.match(/COSIGN_KEY is not set/);
    expect(code).to.equal(1);
    expect(await tagsOf(place)).to.deep.equal(tags);
  });

  it('has a usage text', async () => {
    const { code, stdout } = await maintainer.release(['--help']);
    expect(stdout).to.match(/^usage: hack\/release\.sh VERSION \[--no-push\]/);
    expect(stdout).to.include(`REPOSITORY`);
    expect(code).to.equal(0);
  });
});
