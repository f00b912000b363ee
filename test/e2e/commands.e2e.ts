import { copyFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { listen } from '../../src/kit/network/listen.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { type Finished, runBundle, startCommand } from '../support/controller-process.ts';
import { ours, tolerations } from '../support/objects.ts';
import { daemonSet, deployment, pod, statefulSet } from '../support/workloads.ts';
import { type ApiProxy, startApiProxy } from './support/api-proxy.ts';
import { changeKubeconfig } from './support/kubeconfig.ts';
import { arrange, type Places } from './support/places.ts';
import { worldForAll } from './support/world.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Whose rights are missing, by command. */
const RIGHTS: ReadonlyMap<string, RegExp> = new Map([
  ['run', /forbidden.*; grant it the roles in manifests\/archaware-controller\.yaml/],
  ['plan', /forbidden.*; an administrator can grant you the ClusterRole archaware-reader: docs\/rights\.md/],
  ['clean', /forbidden.*clean looks for the Deployment archaware\/archaware-controller and its Lease/],
]);

describe('the commands', () => {
  const world = worldForAll();
  let proxy: ApiProxy;
  let through: string;
  let places: Places;

  before(async () => {
    proxy = await startApiProxy(world.cluster);
    world.atEnd(proxy.close);
    through = await proxy.kubeconfig(world.kubeconfig);
    places = await arrange(world);
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

  const written = (name: string, server: string, token: string) => {
    const cluster = () => ({ server, 'certificate-authority': world.cluster.caFile });
    const change = { cluster, user: { token } };
    return changeKubeconfig(world.kubeconfig, change, join(places.directory, `${name}.kubeconfig`));
  };

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
      const changes = listAt(plan, 'changes').map(requestOf);
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
    function requestOf(change: unknown): string {
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
    const failures: [what: string, kubeconfig: () => Promise<string>, words: (command: string) => RegExp][] = [
      [
        'the API server cannot be reached',
        () => written('away', 'https://127.0.0.1:1', 'a'),
        () => /cannot reach the API server at 127\.0\.0\.1:1.*ECONNREFUSED/,
      ],
      [
        'its account lacks rights, and how to get them',
        () => world.cluster.serviceAccountKubeconfig('default', 'default'),
        (command) => RIGHTS.get(command) ?? /(?!)/,
      ],
      [
        'its token is not accepted',
        () => written('token', world.cluster.server, 'wrong'),
        () => /401 Unauthorized; log in again/,
      ],
    ];
    for (const command of ['run', 'plan', 'clean']) {
      it(`${command} says that there is no kubeconfig`, async () => {
        saysInOneLine(await runBundle([command]), 3, /no kubeconfig found: give one with --kubeconfig FILE/);
      });
      for (const [what, kubeconfig, words] of failures) {
        it(`${command} says that ${what}`, async () => {
          const finished = await runBundle([command, '--kubeconfig', await kubeconfig()]);
          // What is tried again says so first.
          saysInOneLine({ ...finished, stderr: lastLine(finished.stderr) }, 1, words(command));
        });
      }
    }

    it('run says that its port is taken', async () => {
      const controller = await world.run();
      const finished = await world.command(['run', '--metrics.address', `127.0.0.1:${controller.port}`]);
      const last = lastLine(finished.stderr);
      saysInOneLine({ ...finished, stderr: last }, 1, /metrics\.address: cannot listen on .* choose another port/);
    });

    for (const [args, words] of [
      [['run', '--taints.effect', 'noschedule'], /taints\.effect: got "noschedule", expected one of NoSchedule/],
      [['plan', '--config', '/nowhere.yaml'], /\/nowhere\.yaml/],
      [['inspect'], /inspect: expected at least one IMAGE/],
    ] as const) {
      it(`${args.join(' ')} is refused with exit code 3`, async () => saysInOneLine(await runBundle(args), 3, words));
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

    for (const [who, code, args] of [
      ['the API server', 0, (_host: string, file: string) => ['run', '--kubeconfig', file, '--metrics.address', '']],
      ['a registry', 1, (host: string) => ['inspect', '--registries.insecure', host, `${host}/a:b`]],
    ] as const) {
      it(`ends promptly with ${code} though ${who} takes a connection and never says a word`, async () => {
        const connections: Socket[] = [];
        const silent = createServer((socket) => void connections.push(socket.on('error', () => undefined)));
        const host = `127.0.0.1:${await listen(silent, '127.0.0.1:0')}`;
        const command = startCommand(args(host, await written('silent', `https://${host}`, 'a')));
        await world.eventually('a connection', async () => connections.length > 0);
        const told = performance.now();
        command.kill('SIGTERM');
        const ended = await command.ended;
        expect(performance.now() - told).to.be.below(3_000);
        expect(ended.code, ended.stderr).to.equal(code);
        if (code === 0) expect(ended).to.deep.equal({ code, stdout: '', stderr: '' });
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
      const bundle = join(places.directory, 'main.js');
      await copyFile(BUNDLE, bundle);
      const alone = (...args: readonly string[]) => runBundle(args, { bundle, cwd: places.directory });
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
