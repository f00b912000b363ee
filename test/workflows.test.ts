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

describe('the base image', () => {
  it('is the same in the Dockerfile and in the file that Dependabot updates', () => {
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
