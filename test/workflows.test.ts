import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const FOLDER = '.github/workflows/';
const text = (path: string) => readFileSync(ROOT + path, 'utf8');

const permissions = z.record(z.string(), z.enum(['read', 'write', 'none']));
const step = z.object({
  name: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
const job = z.object({
  uses: z.string().optional(),
  if: z.string().optional(),
  'timeout-minutes': z.number().optional(),
  permissions,
  environment: z.string().optional(),
  strategy: z.object({ matrix: z.record(z.string(), z.array(z.string())) }).optional(),
  steps: z.array(step).optional(),
});
const workflow = z.object({
  on: z.record(z.string(), z.unknown()),
  permissions,
  concurrency: z.unknown(),
  jobs: z.record(z.string(), job),
});

const workflows = readdirSync(ROOT + FOLDER).map((file) => ({
  file,
  source: text(FOLDER + file),
  ...workflow.parse(parse(text(FOLDER + file))),
}));
const release = workflows.find(({ file }) => file === 'release.yml');
const jobs = workflows.flatMap(({ file, jobs: all }) =>
  Object.entries(all).map(([id, each]) => ({ title: `${file}: ${id}`, ...each })),
);
const steps = jobs.flatMap(({ title, steps: all }) => (all ?? []).map((each) => ({ title, ...each })));
const scripts = steps.flatMap(({ title, run }) => (run === undefined ? [] : [{ title, run }]));

// Pinned actions, rights, secrets, tokens in the work tree, scripts made of an event's text and caches of a release: zizmor, in lint:workflows.
describe('the workflows of GitHub Actions', () => {
  it('end a job that hangs', () => {
    const endless = jobs.filter((each) => each.uses === undefined && each['timeout-minutes'] === undefined);
    expect(endless.map(({ title }) => title)).to.deep.equal([]);
  });

  it('run only npm scripts and files that exist', () => {
    const npm = z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(text('package.json'))).scripts;
    const missing = scripts.flatMap(({ title, run }) => {
      const names = [...run.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(test)\b)/g)].map(
        ([, a, b]) => a ?? b ?? '',
      );
      const files = [...run.matchAll(/(?<![\w/.~$}])((?:hack|test|\.ci)\/[\w./-]+)/g)].map(([, path = '']) => path);
      return [
        ...names.filter((name) => !(name in npm)).map((name) => `${title}: npm run ${name}`),
        ...files.filter((path) => !existsSync(ROOT + path)).map((path) => `${title}: ${path}`),
      ];
    });
    expect(missing).to.deep.equal([]);
  });

  it('try the least Node.js, and release with the one that the image has', () => {
    const { test } = workflows.find(({ file }) => file === 'ci.yml')?.jobs ?? {};
    expect(test?.strategy?.matrix.node).to.include(text('.nvmrc').trim());
    const used = Object.values(release?.jobs ?? {}).flatMap((each) =>
      (each.steps ?? []).flatMap(({ with: inputs }) => inputs?.['node-version'] ?? []),
    );
    const [, ofImage] = /with Node\.js (\d+\.\d+\.\d+),/.exec(text('Dockerfile')) ?? [];
    expect(used).to.deep.equal([ofImage, ofImage]);
  });

  it('use a Go that is no older than any go.mod asks for', () => {
    const versions = steps.flatMap(({ with: inputs }) => inputs?.['go-version'] ?? []);
    expect(new Set(versions).size).to.equal(1);
    const [major = 0, minor = 0] = String(versions[0]).split('.').map(Number);
    const newer = goModules().filter((path) => {
      const [, first, second] = /^go (\d+)\.(\d+)/m.exec(text(path)) ?? [];
      return Number(first) > major || (Number(first) === major && Number(second) > minor);
    });
    expect(newer).to.deep.equal([]);
  });
});

describe('the workflow that releases', () => {
  it('starts by a tag only, after all checks of ci.yml have passed', () => {
    expect(release?.on).to.deep.equal({ push: { tags: ['v*'] } });
    expect(release?.jobs.checks?.uses).to.equal('./.github/workflows/ci.yml');
    const needs = parse(release?.source ?? '').jobs;
    expect([needs.release.needs, needs.publish.needs, needs.npm.needs]).to.deep.equal(['checks', 'release', 'publish']);
  });

  it('lets no job do more than its part: one signs and pushes, one publishes files, one speaks to npm', () => {
    const writes = Object.entries(release?.jobs ?? {}).map(([id, { permissions: rights }]) => [
      id,
      Object.keys(rights).filter((right) => rights[right] === 'write'),
    ]);
    expect(Object.fromEntries(writes)).to.deep.equal({
      checks: [],
      release: ['packages', 'id-token'],
      publish: ['contents'],
      npm: ['id-token'],
    });
  });

  it('publishes the npm package only where the maintainers have said so', () => {
    expect(release?.jobs.npm?.if).to.equal("vars.NPM_PUBLISH == 'true'");
  });
});

describe('Dependabot', () => {
  const configuration = z
    .object({
      updates: z.array(
        z.object({
          'package-ecosystem': z.string(),
          directory: z.string().optional(),
          directories: z.array(z.string()).optional(),
        }),
      ),
    })
    .parse(parse(text('.github/dependabot.yml')));

  /** The folders of an ecosystem, without the slash before them; globs are resolved. */
  const foldersOf = (ecosystem: string): string[] =>
    configuration.updates
      .filter((update) => update['package-ecosystem'] === ecosystem)
      .flatMap(({ directory, directories }) => directories ?? directory ?? [])
      .flatMap((path) => (path.endsWith('/*') ? below(path.slice(1, -2)) : [path.slice(1)]));

  it('looks after each go.mod, and only where one is', () => {
    expect(foldersOf('gomod').sort()).to.deep.equal(
      goModules()
        .map((path) => path.slice(0, -'/go.mod'.length))
        .sort(),
    );
  });

  for (const [ecosystem, file] of [
    ['npm', 'package-lock.json'],
    ['docker', 'base.Dockerfile'],
    ['pip', 'requirements.txt'],
    ['github-actions', '.github/workflows/ci.yml'],
  ] as const) {
    it(`looks after ${file}`, () => {
      const folders = foldersOf(ecosystem);
      expect(folders).to.have.length.above(0);
      expect(folders.filter((folder) => !existsSync(`${ROOT}${folder}/${file}`))).to.deep.equal([]);
    });
  }

  it('updates the base image in a file that names the same one as the Dockerfile', () => {
    const base = /^FROM (\S+)$/m.exec(text('hack/image/base.Dockerfile'))?.[1];
    expect(base).to.match(/@sha256:[0-9a-f]{64}$/);
    expect(/^ARG BASE_IMAGE=(.*)$/m.exec(text('Dockerfile'))?.[1]).to.equal(base);
  });
});

describe('the files below .github', () => {
  it('name no account that somebody could create, and no one by name', () => {
    expect(
      text('.github/CODEOWNERS')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#')),
    ).to.deep.equal([]);
    const files = readdirSync(`${ROOT}.github`, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /\.\w+$/.test(path),
    );
    for (const file of files)
      expect(text(`.github/${file}`), file).not.to.match(/github\.com\/|(?:ghcr|docker)\.io\/\w/);
  });
});

/** Every go.mod of the repository. */
function goModules(): string[] {
  return ['hack', 'test', 'testimg']
    .flatMap((folder) =>
      readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
    )
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('/go.mod'))
    .sort();
}

/** The folders in a folder that have a go.mod; none where the folder is not there. */
function below(folder: string): string[] {
  if (!existsSync(ROOT + folder)) return [];
  return readdirSync(ROOT + folder).flatMap((name) =>
    existsSync(`${ROOT}${folder}/${name}/go.mod`) ? `${folder}/${name}` : [],
  );
}
