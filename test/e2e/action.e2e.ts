import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { attempt, run } from '../../hack/programs.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { folderForAll } from '../support/folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SOMEBODY = ['-c', 'user.name=t', '-c', 'user.email=t@example.com'];

describe('the GitHub Action, by its own step', function () {
  this.timeout(60_000);
  const folder = folderForAll();
  let registry: TestRegistry;
  let step: unknown;

  before(async () => {
    registry = await startTestRegistry();
    registry.put('shop/web', '1', ['amd64', 'arm64']);
    registry.put('shop/web', '2', ['amd64']);
    step = listAt(parse(await readFile(join(ROOT, 'action.yml'), 'utf8')), 'runs', 'steps').at(-1);
    await git('init', '--quiet', '--initial-branch=main', 'origin');
    await commit('origin', { 'deploy/web.yaml': deployment('web', '1'), 'render.sh': 'cat deploy/*.yaml' }, 'first');
    await git('clone', '--quiet', `file://${folder.at('origin')}`, 'checkout');
  });

  after(() => registry?.stop());

  it('fails where an update drops an architecture, and says so in the summary', async () => {
    await commit('checkout', { 'deploy/web.yaml': deployment('web', '2') }, 'update');
    const { code, summary } = await check({ manifests: 'deploy' });
    expect(code).to.equal(2);
    expect(summary).to.include('arm64').and.include('/shop/web:2');
  });

  it('renders both sides with a command', async () => {
    const { code, summary } = await check({ render: 'sh render.sh' });
    expect(code).to.equal(2);
    expect(summary).to.include('/shop/web:2');
  });

  it('passes where nothing is dropped, and takes away what it made', async () => {
    await commit('checkout', { 'deploy/web.yaml': deployment('web', '1') }, 'back');
    expect((await check({ manifests: 'deploy' })).code).to.equal(0);
    expect((await git('-C', 'checkout', 'worktree', 'list')).trim().split('\n')).to.have.length(1);
  });

  it('checks architectures without anything to compare with', async () => {
    expect((await check({ manifests: 'deploy', architectures: 'amd64,arm64', base: 'none' })).code).to.equal(0);
    expect((await check({ manifests: 'deploy', architectures: 's390x', base: 'none' })).code).to.equal(2);
  });

  it('refuses what it cannot check, with the input that is wrong', async () => {
    const wrong = async (inputs: Inputs) => {
      const { code, stdout } = await check(inputs);
      expect(code).to.equal(3);
      return stdout;
    };
    expect(await wrong({})).to.include('set manifests (a file or directory) or render');
    expect(await wrong({ manifests: 'deploy', render: 'true' })).to.include('not both');
    expect(await wrong({ manifests: 'deploy', base: 'nowhere' })).to.include('base: nowhere is no branch or commit');
  });

  type Inputs = Readonly<Record<string, string>>;

  /** Runs the step as a runner does in a pull request to main: each input in the variable that the step gives it. */
  async function check(inputs: Inputs) {
    const summary = folder.at('summary.md');
    await rm(summary, { force: true });
    const given = Object.entries(at(step, 'env') ?? {}).map(([name, expression]) => {
      const [, input = ''] = /inputs\.(\w+)/.exec(String(expression)) ?? [];
      return [name, inputs[input] ?? (String(expression).includes('github.base_ref') ? 'main' : '')];
    });
    const env = {
      ...Object.fromEntries(given),
      GITHUB_ACTION_PATH: ROOT,
      GITHUB_STEP_SUMMARY: summary,
      RUNNER_TEMP: folder.at(),
      ARCHAWARE_REGISTRIES__INSECURE: registry.host,
    };
    const ended = await attempt('bash', ['-c', textAt(step, 'run')], { cwd: folder.at('checkout'), env });
    return { ...ended, summary: await readFile(summary, 'utf8').catch(() => '') };
  }

  function deployment(name: string, tag: string): string {
    const containers = [{ name: 'web', image: `${registry.host}/shop/web:${tag}` }];
    const template = { metadata: { labels: { app: name } }, spec: { containers } };
    const spec = { selector: { matchLabels: { app: name } }, template };
    return JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' }, spec });
  }

  async function commit(repository: string, files: Readonly<Record<string, string>>, message: string) {
    for (const [name, contents] of Object.entries(files)) await folder.write({ [`${repository}/${name}`]: contents });
    await git('-C', repository, 'add', '-A');
    await git('-C', repository, ...SOMEBODY, 'commit', '--quiet', '-m', message);
  }

  const git = (...args: readonly string[]) => run('git', args, { cwd: folder.at() });
});
