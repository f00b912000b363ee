import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { startCluster } from '../../hack/cluster/cluster.ts';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { runBundle } from '../support/controller-process.ts';
import { folderForAll } from '../support/folder.ts';
import { ARCHITECTURES, OWN_ARCHITECTURE } from './support/base-image.ts';
import { isInstalled, type Program, run, runWith } from './support/programs.ts';
import { keepProjectImage, prepareBuild } from './support/project-image.ts';

const MANIFEST = new URL('../../manifests/archaware-controller.yaml', import.meta.url);
const CRANE: Program = [join(binaries(), 'crane')];
const USER = '65532:65532';
/** Runs what stands after `--`, with a file that is loaded first, and prints how it ended. */
const PARENT = `const { spawnSync } = require('node:child_process');
const NODE_OPTIONS = process.env.NODE_OPTIONS + ' --require /tmp/preloaded.js';
const args = process.argv.slice(process.argv.indexOf('--') + 1);
const { status, stdout, stderr } = spawnSync('archaware', args, { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS } });
console.log(JSON.stringify({ status, stdout, stderr }));
`;

describe('the image', function () {
  this.timeout(600_000);
  const folder = folderForAll();
  let registry: Registry;
  let checkout: string;
  let base: string;
  /** What hack/build.sh printed, for two tags of one commit. */
  let built: readonly string[];

  before(async function () {
    const missing = process.getuid?.() === 0 ? ['buildah', 'git'].filter((name) => !isInstalled(name)) : ['root'];
    if (missing.length > 0 && process.env.CI !== undefined) throw new Error(`missing: ${missing.join(', ')}`);
    if (missing.length > 0) return this.skip();
    registry = await startRegistry();
    const prepared = await prepareBuild(folder.at(), registry.host);
    ({ base, checkout } = prepared);
    const build = (tag: string) =>
      runWith(
        { ...prepared.environment, SAID: folder.at(`${tag}.txt`) },
        ['bash', '-c', 'exec "$0" "$@" 2> "$SAID"', join(checkout, 'hack/build.sh')],
        'team',
        tag,
      );
    built = [await build('first'), await build('second')];
    const [repository = '', digest = ''] = built[0]?.trim().split(':first@') ?? [];
    // The real node runs it, if that is next.
    await keepProjectImage({ repository, digest });
  });

  after(() => registry?.remove());

  const image = () => `${registry.host}/team/archaware-controller:first`;
  const configurationOf = async (architecture: string, name = image()): Promise<unknown> =>
    JSON.parse(await run(CRANE, 'config', '--platform', `linux/${architecture}`, name));
  const sourceFile = async (name: string): Promise<unknown> => JSON.parse(await readFile(join(checkout, name), 'utf8'));

  it('is the same for the same commit, built twice', () => {
    const digests = built.map((line) => /^(.+):(first|second)@(sha256:[0-9a-f]{64})\n$/.exec(line)?.slice(1) ?? line);
    expect(digests.map(([name]) => name)).to.deep.equal(
      digests.map(() => `${registry.host}/team/archaware-controller`),
    );
    expect(digests[0]?.[2]).to.be.a('string').that.equals(digests[1]?.[2]);
  });

  it('is not pushed without one of the platforms, as with a base that is the same for all of them', async () => {
    const context = folder.at('same');
    const to = folder.at('layout');
    await mkdir(context);
    await writeFile(join(context, 'Dockerfile'), 'FROM scratch\nCOPY Dockerfile /\n');
    const environment = { TMPDIR: folder.at('scratch'), BUILDAH_ISOLATION: 'chroot', SOURCE_DATE_EPOCH: '0' };
    const script: Program = [
      'bash',
      '-c',
      '"$0" "$@" 2>&1 || echo "exit code $?"',
      join(checkout, 'hack/image/build.sh'),
    ];
    const lines = (await runWith(environment, script, context, `oci:${to}`)).trim().split('\n');
    expect(lines.at(-2)).to.include(`the index of oci:${to} lacks linux/amd64, linux/arm64, linux/ppc64le: `);
    expect(lines.at(-1)).to.equal('exit code 1');
    expect(existsSync(to)).to.equal(false);
  });

  it('is read back by our own inspect, with every platform', async () => {
    const args = ['--output', 'json', '--registries.insecure', registry.host, image()];
    const { code, stdout, stderr } = await runBundle(['inspect', ...args]);
    expect(code, stderr).to.equal(0);
    const found: unknown = JSON.parse(stdout);
    expect(`${image()}@${textAt(found, 0, 'digest')}\n`).to.equal(built[0]);
    const platforms = listAt(at(found, 0), 'platforms');
    expect(
      platforms.map((platform) => `${textAt(platform, 'os')}/${textAt(platform, 'architecture')}`),
    ).to.have.members(ARCHITECTURES.map((architecture) => `linux/${architecture}`));
  });

  for (const architecture of ARCHITECTURES) {
    it(`for ${architecture} says so itself, and stands on the base of ${architecture}`, async () => {
      const configuration = await configurationOf(architecture);
      expect([at(configuration, 'os'), at(configuration, 'architecture')]).to.deep.equal(['linux', architecture]);
      const bottom = async (name: string) => textAt(await configurationOf(architecture, name), 'rootfs', 'diff_ids', 0);
      expect(await bottom(image())).to.equal(await bottom(base));
    });
  }

  it('says what it is, whose commit it is, and runs as nobody', async () => {
    const configuration = await configurationOf(OWN_ARCHITECTURE);
    const commit = (await run(['git', '-C', checkout], 'log', '-1', '--format=%H %ct')).trim().split(' ');
    const source = await sourceFile('package.json');
    expect(at(configuration, 'config', 'Labels')).to.include({
      'org.opencontainers.image.title': 'archaware-controller',
      'org.opencontainers.image.licenses': at(source, 'license'),
      'org.opencontainers.image.version': at(source, 'version'),
      'org.opencontainers.image.revision': commit[0],
      'org.opencontainers.image.base.name': base,
    });
    const created = Date.parse(textAt(configuration, 'config', 'Labels', 'org.opencontainers.image.created'));
    expect(created).to.equal(Number(commit[1]) * 1000);
    expect(at(configuration, 'config', 'User')).to.equal(USER);
    expect(listAt(configuration, 'config', 'Env')).to.include.members(['UV_THREADPOOL_SIZE=64']);
    const command = [...listAt(configuration, 'config', 'Entrypoint'), ...listAt(configuration, 'config', 'Cmd')];
    expect(command).to.deep.equal(['node', 'dist/main.js', 'run']);
  });

  describe('with nothing but what is in it', () => {
    let root: string;
    let environment: readonly string[];

    before(async () => {
      root = folder.at('root');
      await mkdir(root);
      await run(CRANE, 'export', '--platform', `linux/${OWN_ARCHITECTURE}`, image(), `${root}.tar`);
      await run(['tar'], '-xf', `${root}.tar`, '-C', root);
      const configuration = await configurationOf(OWN_ARCHITECTURE);
      const variables = listAt(configuration, 'config', 'Env').map(String);
      environment = ['env', '-i', '-C', textAt(configuration, 'config', 'WorkingDir'), ...variables];
    });
    const inside = (...command: readonly string[]): Program => [
      'chroot',
      `--userspec=${USER}`,
      root,
      ...environment,
      ...command,
    ];

    it('runs as the manifest starts it', async () => {
      const program = inside(...(await manifestCommand()));
      expect(await run(program, '--help')).to.match(/Taint nodes, and give pods and DaemonSets their tolerations/);
      expect(await run(program, 'config', 'print')).to.match(/supported-arch/);
      const read = await run(program, 'inspect', '--output', 'json', '--registries.insecure', registry.host, image());
      expect(listAt(at(JSON.parse(read), 0), 'platforms')).to.have.lengthOf(ARCHITECTURES.length);
    });

    it('runs as archaware, the name on its PATH', async () => {
      expect(await run(inside('archaware'), '--version')).to.equal(
        `${textAt(await sourceFile('package.json'), 'version')}\n`,
      );
    });

    describe('beside the controller, as by kubectl exec', () => {
      /** Runs `archaware` in a namespace of processes, whose first one has the command line of the controller. */
      async function beside(args: readonly string[], preloaded = ''): Promise<unknown> {
        await mkdir(join(root, 'proc'), { recursive: true });
        await writeFile(join(root, 'tmp/main.js'), PARENT);
        await writeFile(join(root, 'tmp/preloaded.js'), preloaded);
        const variables = ['KUBERNETES_SERVICE_HOST=10.96.0.1', 'NODE_OPTIONS=--max-old-space-size=160'];
        const own: Program = ['unshare', '--pid', '--fork', '--kill-child', `--mount-proc=${join(root, 'proc')}`];
        const parent = inside('env', ...variables, 'node', '/tmp/main.js', 'run', '--config', '/etc/config.yaml');
        return JSON.parse(await run([...own, ...parent], '--', ...args));
      }

      it('refuses clean, with exit code 3', async () => {
        const { status, stderr } = finishedOf(await beside(['clean', '--yes']));
        expect(stderr).to.match(/^archaware: clean: does not run in the controller's container/);
        expect(status).to.equal(3);
      });

      it('runs inspect with a heap of at most 64 MiB', async () => {
        const say = 'console.log(require("node:v8").getHeapStatistics().heap_size_limit / 2 ** 20)';
        const { status, stdout } = finishedOf(await beside(['inspect', '--help'], say));
        const [limit, ...help] = stdout.split('\n');
        expect(Number(limit)).to.be.within(32, 64);
        expect([status, help[0]]).to.deep.equal([0, 'archaware inspect IMAGE… [flags]']);
      });

      it('says what to do if the heap is full', async () => {
        const fill = 'const all = []; for (;;) all.push(new Array(1000).fill(all.length));';
        const { status, stderr } = finishedOf(await beside(['inspect', '--help'], fill));
        expect(stderr).to.match(/^archaware: this needs more memory .* run it outside the cluster or as a Job$/m);
        expect(status).to.equal(1);
      });
    });
  });

  it('is installed by the commands that the script prints, with helm and with kubectl', async () => {
    const said = (await readFile(folder.at('first.txt'), 'utf8')).split('\n');
    const cluster = await startCluster({ kwok: false, schedulerAndManager: false });
    try {
      const environment = {
        PATH: [binaries(), process.env.PATH].join(delimiter),
        KUBECONFIG: cluster.kubeconfig,
        HELM_CONFIG_HOME: folder.at(),
      };
      const [line = ''] = built;
      for (const [begin, name] of [
        ['helm', line.trim().replace(':first@', '@')],
        ['sed', line.trim()],
      ]) {
        const command = said.find((text) => text.startsWith(`  ${begin} `));
        await runWith(environment, ['bash', '-euc', `cd "$0"\n${command}`, checkout]);
        const path = '/apis/apps/v1/namespaces/archaware/deployments/archaware-controller';
        const { body } = await cluster.request('GET', path);
        expect(textAt(body, 'spec', 'template', 'spec', 'containers', 0, 'image')).to.equal(name);
      }
    } finally {
      await cluster.stop();
    }
  });

  it('has a list of the packages in it beside it, those of tests left out', async () => {
    const list = await sourceFile('dist/archaware-controller-first.spdx.json');
    expect(textAt(list, 'spdxVersion')).to.match(/^SPDX-2/);
    const names = listAt(list, 'packages').map((one) => textAt(one, 'name'));
    const dependencies = at(await sourceFile('package.json'), 'dependencies');
    expect(names).to.include.members(Object.keys(dependencies ?? {}));
    expect(names).not.to.include('mocha');
  });
});

/** The command of the Deployment's container. */
async function manifestCommand(): Promise<readonly [string, ...string[]]> {
  const objects = parseAllDocuments(await readFile(MANIFEST, 'utf8')).map((document): unknown => document.toJS());
  const deployment = objects.find((object) => at(object, 'kind') === 'Deployment');
  const [first = '', ...rest] = listAt(deployment, 'spec', 'template', 'spec', 'containers', 0, 'command').map(String);
  return [first, ...rest];
}

function finishedOf(result: unknown): { readonly status: unknown; readonly stdout: string; readonly stderr: string } {
  return { status: at(result, 'status'), stdout: textAt(result, 'stdout'), stderr: textAt(result, 'stderr') };
}
