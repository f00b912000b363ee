import { once } from 'node:events';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { type Finished, runBundle } from '../support/controller-process.ts';
import { ours, tolerations } from '../support/objects.ts';
import { daemonSet, deployment, pod, statefulSet } from '../support/workloads.ts';
import { type ApiProxy, startApiProxy } from './support/api-proxy.ts';
import { startCommand } from './support/bundle.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Whose rights are missing, by command. */
const RIGHTS: ReadonlyMap<string, RegExp> = new Map([
  ['run', /forbidden.*; grant it the roles in manifests\/archaware-controller\.yaml/],
  ['plan', /forbidden.*; an administrator can grant you the ClusterRole archaware-reader: docs\/rights\.md/],
  ['clean', /forbidden.*clean looks for the Deployment archaware\/archaware-controller and its Lease/],
]);

describe('the commands', () => {
  let world: LiveWorld;
  let proxy: ApiProxy;
  let through: string;
  let directory: string;

  before(async () => {
    world = await startWorld();
    proxy = await startApiProxy(world.cluster);
    through = await proxy.kubeconfig(world.kubeconfig);
    directory = await mkdtemp(join(tmpdir(), 'archaware-commands-'));
  });

  after(async () => {
    await world?.stop();
    await proxy?.close();
    if (directory !== undefined) await rm(directory, { recursive: true });
  });

  afterEach(() => world.stopControllers());

  const insecure = () => ['--registries.insecure', world.registry.host];
  const inspect = (...args: readonly string[]) => runBundle(['inspect', ...insecure(), ...args]);

  /**
   * One line on stderr with the program's name and without a stack, nothing on stdout, and this code. The line that says which
   * configuration is used is left out.
   */
  function saysInOneLine({ code, stdout, ...finished }: Finished, expected: number, words: RegExp): void {
    const stderr = finished.stderr
      .replace(/^(?:archaware is not installed here .*)?configuration: .*\n/, '')
      .replace(/^archaware is not installed here .*\n/, '');
    expect(stderr).to.match(words);
    expect(stderr.trimEnd().split('\n'), stderr).to.have.lengthOf(1);
    expect(stderr).to.match(/^archaware: /);
    expect(stderr).not.to.match(/\bat .*\.(js|ts):\d+/);
    expect(stdout).to.equal('');
    expect(code).to.equal(expected);
  }

  function kubeconfigFor(server: string, token: string): string {
    const cluster = { server, 'certificate-authority': world.cluster.caFile };
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'c', user: { token } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    });
  }

  describe('plan', () => {
    it('says exactly what run then writes, writes nothing itself, and has nothing to say afterwards', async () => {
      const ns = await world.namespace('planned');
      const ignored = await world.namespace('planned-ignored', { 'archaware.dev/ignore': 'true' });
      await world.create(
        deployment(ns, 'both', { images: [world.image('multi')], replicas: 3 }),
        statefulSet(ns, 'arm', { images: [world.image('wide')], initImages: [world.image('arm64')] }),
        daemonSet(ns, 'agent', { images: [world.image('multi')] }),
        pod(ns, 'held', { images: [world.image('amd64'), world.image('arm64')] }),
        pod(ns, 'unknown', { images: [world.image('nowhere')] }),
        pod(ignored, 'alone', { images: [world.image('multi')] }),
      );
      await world.eventually('all pods', async () => (await world.list('Pod', ns)).length === 8);
      await world.eventually('the DaemonSet to be settled', async () => {
        return at(await world.get('DaemonSet', ns, 'agent'), 'status', 'numberAvailable') === 2;
      });

      const args = ['plan', '--kubeconfig', through, '--output', 'json', ...insecure()];
      const planned = await runBundle(args);
      expect(planned.stderr).to.match(/1 pod\(s\) are ignored by archaware.*planned-ignored\/alone/);
      expect(planned.code).to.equal(2);
      const isStored = ({ path }: { readonly path: string }) => !path.includes('dryRun=All');
      expect([...proxy.writes().filter(isStored), ...proxy.leaseWrites()]).to.deep.equal([]);
      const plan: unknown = JSON.parse(planned.stdout);
      expect(plan).to.have.all.keys('changes', 'waiting', 'held', 'unresolved', 'workloads', 'ignored', 'refused');
      const changes = listAt(plan, 'changes').map(written);
      expect(listAt(plan, 'held').map((entry) => at(entry, 'name'))).to.deep.equal(['held']);
      expect(listAt(plan, 'waiting').map((entry) => at(entry, 'name'))).to.deep.equal(['unknown']);
      expect(listAt(plan, 'unresolved').map((entry) => [at(entry, 'image'), at(entry, 'code')])).to.deep.equal([
        [world.image('nowhere'), 'not-found'],
      ]);

      const controller = startCommand(['run', '--kubeconfig', through, '--metrics.address', '', ...insecure()]);
      const isDaemonPod = (text: string) => text.includes('/pods/agent-');
      const wrote = () =>
        proxy
          .writes()
          .filter((each) => each.method === 'PATCH' && each.status === 200 && isStored(each))
          .map(({ path, body }) => `${path.split('?')[0]} ${body}`)
          // A list of tolerations that was written is given back to its author.
          .filter((text) => !text.includes('/metadata/managedFields/'));
      await world.eventually('everything planned to be written', async () => {
        const done = new Set(wrote());
        return changes.every((change) => done.has(change) || isDaemonPod(change));
      });
      await world.eventually('nothing more to be planned', async () => (await runBundle(args)).code === 0);
      controller.kill('SIGTERM');
      expect((await controller.ended).code).to.equal(0);
      // A daemon pod may be replaced before its turn comes: its DaemonSet was planned, too.
      expect(wrote().filter((text) => !changes.includes(text))).to.deep.equal([]);
      expect(new Set(wrote()).size).to.equal(wrote().length);

      const settled = await runBundle(['plan', '--kubeconfig', through, ...insecure()]);
      expect(settled.code).to.equal(0);
      expect(settled.stdout)
        .to.match(/^Nothing to change\.$/m)
        .and.to.match(/planned +held/);
      expect(tolerations(await world.get('Pod', ns, 'held'))).to.deep.equal([]);
      expect(tolerations(at(await world.get('DaemonSet', ns, 'agent'), 'spec', 'template'))).to.deep.equal(
        ours('amd64', 'arm64'),
      );
    });

    /** A change as the request that makes it: path and body. */
    function written(change: unknown): string {
      const kind = String(at(change, 'kind'));
      const groups: Readonly<Record<string, string>> = { Pod: 'api/v1', Node: 'api/v1', DaemonSet: 'apis/apps/v1' };
      const namespace = at(change, 'namespace');
      const scope = namespace === undefined ? '' : `/namespaces/${namespace}`;
      const path = `/${groups[kind]}${scope}/${kind.toLowerCase()}s/${at(change, 'name')}`;
      return `${path} ${JSON.stringify(at(change, 'patch'))}`;
    }
  });

  describe('inspect', () => {
    it('says of every fixture in a real registry what the table says', async () => {
      const { code, stdout } = await inspect('--output', 'json', ...FIXTURES.map(({ tag }) => world.image(tag)));
      expect(code).to.equal(2);
      const printed: unknown = JSON.parse(stdout);
      let compared = 0;
      for (const [index, { tag, expected, refusable }] of FIXTURES.entries()) {
        const found = at(printed, index);
        expect(at(found, 'image')).to.equal(world.image(tag));
        const error = at(found, 'error', 'code');
        // This registry did not take it.
        if (refusable !== undefined && error === 'not-found') continue;
        compared++;
        if ('error' in expected) {
          expect(error, tag).to.equal(expected.error);
          expect(at(found, 'error', 'message'), tag).to.match(expected.message);
        } else {
          expect(error, tag).to.equal(undefined);
          const texts = (platforms: readonly unknown[]) =>
            [
              ...new Set(
                platforms.map((platform) =>
                  ['os', 'architecture', 'variant'].map((field) => at(platform, field) ?? '').join('/'),
                ),
              ),
            ].sort();
          expect(texts(listAt(found, 'platforms')), tag).to.deep.equal(texts(expected.platforms));
          expect(at(found, 'digest'), tag).to.match(/^sha256:[0-9a-f]{64}$/);
        }
      }
      expect(compared).to.be.above(12);
    });
  });

  describe('errors', () => {
    for (const command of ['run', 'plan', 'clean']) {
      it(`${command} says that there is no kubeconfig`, async () => {
        saysInOneLine(await runBundle([command]), 3, /no kubeconfig found: give one with --kubeconfig FILE/);
        saysInOneLine(
          await runBundle([command, '--kubeconfig', '/nowhere']),
          3,
          /--kubeconfig: \/nowhere does not exist/,
        );
      });

      it(`${command} says that the API server cannot be reached`, async () => {
        const file = join(directory, 'away.kubeconfig');
        await writeFile(file, kubeconfigFor('https://127.0.0.1:1', 'a'));
        saysInOneLine(
          await runBundle([command, '--kubeconfig', file]),
          1,
          /cannot reach the API server at 127\.0\.0\.1:1.*ECONNREFUSED/,
        );
      });

      it(`${command} says what an account without rights is to be given`, async () => {
        const none = await world.cluster.serviceAccountKubeconfig('default', 'default');
        const missing = RIGHTS.get(command) ?? /(?!)/;
        const { code, stdout, stderr } = await runBundle([command, '--kubeconfig', none]);
        // What is tried again says so first.
        saysInOneLine({ code, stdout, stderr: lastLine(stderr) }, 1, missing);
      });

      it(`${command} says that a token is not accepted`, async () => {
        const file = join(directory, 'token.kubeconfig');
        await writeFile(file, kubeconfigFor(world.cluster.server, 'wrong'));
        saysInOneLine(await runBundle([command, '--kubeconfig', file]), 1, /401 Unauthorized; log in again/);
      });
    }

    it('run says that its port is taken', async () => {
      const controller = await world.run();
      const finished = await world.command(['run', '--metrics.address', `127.0.0.1:${controller.port}`]);
      const last = lastLine(finished.stderr);
      saysInOneLine({ ...finished, stderr: last }, 1, /metrics\.address: cannot listen on .* choose another port/);
    });

    for (const [args, words] of [
      [['run', '--taints.effect', 'noschedule'], /taints\.effect: got "noschedule", expected one of NoSchedule/],
      [['run', '--taints.efect', 'NoSchedule'], /--taints\.efect.*taints\.effect/],
      [['plan', '--config', '/nowhere.yaml'], /\/nowhere\.yaml/],
      [['clean', '--all-pods'], /--all-pods: unknown flag/],
      [['clean', '--timeout', '5m'], /--timeout: unknown flag/],
      [['plan', '--output', 'xml'], /--output: got "xml", expected one of table, json, yaml/],
      [['inspect'], /inspect: expected at least one IMAGE/],
      [['frobnicate'], /unknown command "frobnicate"; expected one of run, /],
      [['plan', '--dry-run'], /--dry-run/],
    ] as const) {
      it(`${args.join(' ')} is refused with exit code 3`, async () => {
        saysInOneLine(await runBundle(args), 3, words);
      });
    }
  });

  describe('run', () => {
    it('is not ready, but alive, before its caches are filled; a SIGTERM then ends it with 0', async () => {
      const hold = proxy.hold((_method, path) => path.startsWith('/api/v1/pods?'));
      const command = startCommand(['run', '--kubeconfig', through, '--metrics.address', '127.0.0.1:0', ...insecure()]);
      const port = await world.eventually('its port', async () => /"port":(\d+)/.exec(command.output())?.[1]);
      const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
      await world.eventually(
        'the other kinds to be listed',
        async () => (await (await get('/readyz')).text()) === 'not ready: pods\n',
      );
      expect((await get('/readyz')).status).to.equal(503);
      expect((await get('/healthz')).status).to.equal(200);
      command.kill('SIGTERM');
      const { code, stderr } = await command.ended;
      hold.release();
      expect(code, stderr).to.equal(0);
      expect(stderr).not.to.match(/\n\s+at /);
    });

    it('ends with 0 by a SIGTERM while the API server has not answered at all', async () => {
      const hold = proxy.hold((_method, path) => path === '/version');
      const command = startCommand(['run', '--kubeconfig', through, '--metrics.address', '', ...insecure()]);
      await world.eventually('it to ask for the version', async () => hold.held() > 0);
      command.kill('SIGTERM');
      const { code, stdout, stderr } = await command.ended;
      hold.release();
      expect({ code, stdout, stderr }).to.deep.equal({ code: 0, stdout: '', stderr: '' });
    });

    for (const [who, args] of [
      ['the API server', (_host: string, file: string) => ['run', '--kubeconfig', file, '--metrics.address', '']],
      ['a registry', (host: string, _file: string) => ['inspect', '--registries.insecure', host, `${host}/a:b`]],
    ] as const) {
      it(`ends promptly though ${who} takes a connection and never says a word`, async () => {
        const connections: Socket[] = [];
        const silent = createServer((socket) => void connections.push(socket.on('error', () => undefined)));
        silent.listen(0, '127.0.0.1');
        await once(silent, 'listening');
        const address = silent.address();
        const host = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
        const file = join(directory, 'silent.kubeconfig');
        await writeFile(file, kubeconfigFor(`https://${host}`, 'a'));
        const command = startCommand(args(host, file));
        await world.eventually('a connection', async () => connections.length > 0);
        const told = performance.now();
        command.kill('SIGTERM');
        await command.ended;
        expect(performance.now() - told).to.be.below(3_000);
        for (const socket of connections) socket.destroy();
        silent.close();
      });
    }

    it('plan says that it was interrupted', async () => {
      const hold = proxy.hold((_method, path) => path.startsWith('/api/v1/pods?'));
      const command = startCommand(['plan', '--kubeconfig', through, ...insecure()]);
      await world.eventually('it to list pods', async () => hold.held() > 0);
      command.kill('SIGINT');
      const finished = await command.ended;
      hold.release();
      saysInOneLine(finished, 1, /interrupted/);
    });

    it('needs nothing beside its one file', async () => {
      const bundle = join(directory, 'main.js');
      await copyFile(BUNDLE, bundle);
      const alone = (...args: readonly string[]) => runBundle(args, { bundle, cwd: directory });
      expect((await alone('--version')).stdout).to.match(/^\d+\.\d+\.\d+\n$/);
      expect((await alone('config', '--help')).stdout).to.match(/--taints\.key/);
      expect((await alone('inspect', ...insecure(), world.image('multi'))).code).to.equal(0);
      expect((await alone('plan', '--kubeconfig', world.kubeconfig, ...insecure())).code).to.be.oneOf([0, 2]);
      expect((await alone('clean', '--kubeconfig', world.kubeconfig, '--dry-run')).code).to.equal(0);
    });
  });
});

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
