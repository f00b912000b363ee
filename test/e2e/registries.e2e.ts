import { join } from 'node:path';
import { expect } from 'chai';
import { account } from '../../hack/cluster/account.ts';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Registry } from '../../hack/cluster/registry.ts';
import type { Front } from '../../hack/cluster/registry-front.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { type ForwardProxyServer, startForwardProxy } from '../support/forward-proxy.ts';
import { nameOf, ours } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';
import { imageAt, pathOf } from '../support/world.ts';
import { arrange, base64, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const OPEN_LATE = ['--images.fallbackAfter', '1h'];
const BOTH = ours('amd64', 'arm64');
const HEADER = 'of-the-mirror-alone';

describe('registries as production has them, on the real control plane', () => {
  let world: LiveWorld;
  let places: Places;
  /** Of fronts with TLS; the registries have one of their own each. */
  const authority = createAuthority('archaware test front authority');

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });

  /** A front that the configuration names as insecure: a registry as any other in images' names. */
  async function source(registry: { readonly url: string } = world.registry): Promise<Front> {
    const front = await places.front({ registry });
    world.allowInsecure(front.host);
    return front;
  }

  async function create(namespace: string, name: string, host: string, tag = 'multi'): Promise<void> {
    await world.create(pod(namespace, name, { images: [imageAt(host, tag)] }));
  }

  /** Ends the controllers, and the pods that the next one would ask registries about. */
  async function clear(): Promise<void> {
    await world.stopControllers();
    const { request } = world.cluster;
    for (const found of await world.list('Namespace', '')) {
      await request('DELETE', `${pathOf('Pod', nameOf(found))}?gracePeriodSeconds=0`);
    }
    await world.eventually('no pods', async () => (await world.list('Pod', '')).length === 0);
  }

  /** One pod of `multi` at this host, in a namespace of its own, which has to be served. */
  async function serves(name: string, host: string): Promise<void> {
    const namespace = await world.namespace(name);
    await create(namespace, 'multi', host);
    await world.eventuallyTolerates(namespace, 'multi', BOTH);
  }

  describe('with mirrors', () => {
    const sources = new Map<string, Front>();
    const mirrors = new Map<string, Front>();
    let basic: Registry;
    let pullThrough: Registry;
    let configuration: string;

    const found = (fronts: ReadonlyMap<string, Front>, name: string): Front => {
      const front = fronts.get(name);
      if (front === undefined) throw new Error(`no front ${name}`);
      return front;
    };
    const sourceOf = (name: string) => found(sources, name);
    const mirrorOf = (name: string) => found(mirrors, name);
    /** The insecure part of it is for `inspect`; `run` gives it as a flag. */
    const insecure = () => [...sources.values()].map(({ host }) => host);

    before(async () => {
      basic = await places.registry({ htpasswd: true });
      pullThrough = await places.registry({ mirrorOf: { url: basic.url, account } });
      for (const name of ['answers', 'misses', 'down', 'chain', 'only', 'prefix', 'through']) {
        sources.set(name, await source());
      }
      for (const name of ['lent', 'kept']) {
        sources.set(name, await source(basic));
        mirrors.set(name, await places.front({ registry: basic }));
      }
      for (const name of ['answers', 'misses', 'down', 'only']) mirrors.set(name, await places.front());
      mirrors.set('prefix', await places.front({ prefix: 'hub' }));
      mirrors.set('hub', await places.front({ prefix: 'cache/library' }));
      mirrorOf('misses').answerWith(404);
      mirrorOf('only').answerWith(404);
      await mirrorOf('down').stop();
      const to = (...names: readonly string[]) => names.map((name) => `http://${mirrorOf(name).host}`);
      const auth = { auth: base64(`${account.username}:${account.password}`) };
      const auths = Object.fromEntries(['lent', 'kept'].map((name) => [sourceOf(name).host, auth]));
      configuration = await places.file('mirrors.yaml', {
        registries: {
          insecure: insecure(),
          mirrors: {
            [sourceOf('answers').host]: { endpoints: to('answers') },
            [sourceOf('misses').host]: { endpoints: to('misses') },
            [sourceOf('down').host]: { endpoints: to('down') },
            [sourceOf('chain').host]: { endpoints: to('misses', 'down', 'answers') },
            [sourceOf('only').host]: { endpoints: to('only'), fallback: false },
            [sourceOf('prefix').host]: { endpoints: [`${to('prefix')[0]}/hub`] },
            [sourceOf('through').host]: { endpoints: [pullThrough.url] },
            [sourceOf('lent').host]: { endpoints: to('lent'), credentials: 'source' },
            [sourceOf('kept').host]: { endpoints: to('kept') },
            'docker.io': { endpoints: [`${to('hub')[0]}/cache`], fallback: false },
          },
        },
        credentials: { dockerConfigFiles: [await places.file('docker.json', JSON.stringify({ auths }))] },
      });
      await world.run([...OPEN_LATE, '--config', configuration]);
    });
    after(clear);

    it('asks the mirror, with the name of the registry, and not the registry', async () => {
      await serves('mirror-answers', sourceOf('answers').host);
      const paths = mirrorOf('answers')
        .requests()
        .map(({ path }) => path);
      const namespace = encodeURIComponent(sourceOf('answers').host);
      expect(paths).to.include(`/v2/${TESTIMG_REPOSITORY}/manifests/multi?ns=${namespace}`);
      expect(sourceOf('answers').requests()).to.deep.equal([]);
    });

    it('asks the registry where the mirror does not have it', async () => {
      await serves('mirror-misses', sourceOf('misses').host);
      expect(mirrorOf('misses').requests()).to.not.deep.equal([]);
      const paths = sourceOf('misses')
        .requests()
        .map(({ path }) => path);
      expect(paths).to.include(`/v2/${TESTIMG_REPOSITORY}/manifests/multi`);
    });

    it('asks the registry where the mirror is down', () => serves('mirror-down', sourceOf('down').host));

    it('asks mirrors in their order', async () => {
      await serves('mirrors-in-order', sourceOf('chain').host);
      expect(sourceOf('chain').requests()).to.deep.equal([]);
    });

    it('never asks the registry with fallback: false, and says so', async () => {
      const namespace = await world.namespace('mirror-only');
      await create(namespace, 'missing', sourceOf('only').host);
      const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /not-found/);
      expect(note).to.include(mirrorOf('only').host);
      expect(sourceOf('only').requests()).to.deep.equal([]);
    });

    it('puts the prefix of a mirror before the repository', async () => {
      await serves('mirror-prefix', sourceOf('prefix').host);
      const [first] = mirrorOf('prefix').requests();
      expect(first?.path).to.match(new RegExp(`^/v2/hub/${TESTIMG_REPOSITORY}/manifests/multi[?]ns=`));
      expect(sourceOf('prefix').requests()).to.deep.equal([]);
    });

    it('finds the images of Docker Hub by their short names', async () => {
      const namespace = await world.namespace('mirror-hub');
      const images = [`${TESTIMG_REPOSITORY}:multi`, `index.docker.io/library/${TESTIMG_REPOSITORY}:arm64`];
      await world.create(...images.map((image, index) => pod(namespace, `pod-${index}`, { images: [image] })));
      await world.eventuallyTolerates(namespace, 'pod-0', BOTH);
      await world.eventuallyTolerates(namespace, 'pod-1', ours('arm64'));
      const [first] = mirrorOf('hub').requests();
      expect(first?.path).to.equal(`/v2/cache/library/${TESTIMG_REPOSITORY}/manifests/multi?ns=docker.io`);
    });

    it('is served by a pull-through cache, which logs in for us', async () => {
      await serves('pull-through', sourceOf('through').host);
      const agents = (await basic.requests()).map(({ userAgent }) => userAgent);
      expect(agents.filter((agent) => agent.startsWith('archaware-controller'))).to.deep.equal([]);
      expect(sourceOf('through').requests()).to.deep.equal([]);
    });

    it("sends a mirror the registry's credentials with credentials: source alone", async () => {
      await serves('credentials-lent', sourceOf('lent').host);
      expect(
        mirrorOf('lent')
          .requests()
          .map(({ login }) => login?.password),
      ).to.include(account.password);
      expect(sourceOf('lent').requests()).to.deep.equal([]);
      await serves('credentials-kept', sourceOf('kept').host);
      const sent = mirrorOf('kept').requests();
      expect(sent).to.not.deep.equal([]);
      expect(sent.filter(({ headers }) => headers.authorization !== undefined)).to.deep.equal([]);
    });

    it('shows in inspect what has answered', async () => {
      const answering = {
        [sourceOf('answers').host]: mirrorOf('answers').host,
        [sourceOf('misses').host]: sourceOf('misses').host,
        [sourceOf('prefix').host]: `${mirrorOf('prefix').host}/hub`,
        [sourceOf('through').host]: pullThrough.host,
      };
      const images = Object.keys(answering).map((host) => imageAt(host, 'multi'));
      const args = ['inspect', '--output', 'json', '--config', configuration, ...images];
      const { code, stdout, stderr } = await world.command(args);
      expect(code, stderr).to.equal(0);
      const shown = listAt({ results: JSON.parse(stdout) }, 'results').map((result) => at(result, 'source'));
      expect(shown).to.deep.equal(Object.values(answering));
    });
  });

  describe("with containerd's hosts.toml and certificates", () => {
    const HOSTS = ['mutual', 'headers', 'digests', 'unverified', 'untrusted'];
    const nameOf = (name: string) => `${name}.example.test`;
    const fronts = new Map<string, Front>();
    let trusted: Registry;
    let stranger: Front;
    let controller: RunningController;

    function front(name: string): Front {
      const found = fronts.get(name);
      if (found === undefined) throw new Error(`no front ${name}`);
      return found;
    }

    before(async () => {
      trusted = await places.registry({ tls: true });
      const mutual = await places.registry({ tls: 'mutual' });
      stranger = await places.front({ authority: createAuthority('nobody knows it') });
      fronts.set('secure', await places.front({ authority, prefix: 'hub' }));
      for (const name of ['source', 'mirror', 'missing']) fronts.set(name, await places.front());
      fronts.set('appended', await source());
      front('missing').answerWith(404);
      const { certificate = '', key = '' } = mutual.client ?? {};
      const tomls: Record<string, string> = {
        mutual: `server = "${mutual.url}"\nca = "${mutual.caFile}"\nclient = [["${certificate}", "${key}"]]\n`,
        headers:
          `server = "${front('source').url}"\n[host."${front('secure').url}/v2/hub"]\noverride_path = true\n` +
          `ca = ["ca.crt"]\n[host."${front('secure').url}/v2/hub".header]\nX-Tests = "${HEADER}"\n`,
        digests: `server = "${front('source').url}"\n[host."${front('mirror').url}"]\ncapabilities = ["pull"]\n`,
        unverified: `server = "${stranger.url}"\nskip_verify = true\n`,
        untrusted: `server = "${stranger.url}"\n`,
      };
      for (const name of HOSTS) await places.file(`certs.d/${nameOf(name)}/hosts.toml`, tomls[name]);
      await places.file(`certs.d/${nameOf('headers')}/ca.crt`, authority.certificate);
      // No server: the registry itself comes last.
      const folder = front('appended').host.replace(':', '_');
      await places.file(`certs.d/${folder}_/hosts.toml`, `[host."${front('missing').url}"]\n`);
      await places.file('default.d/_default/hosts.toml', `[host."${front('mirror').url}"]\n`);
      const configuration = await places.file('hosts.yaml', {
        registries: {
          containerdConfigDirectory: join(places.directory, 'certs.d'),
          caFile: trusted.caFile,
          addresses: { allow: ['127.0.0.0/8'] },
        },
      });
      controller = await world.run([...OPEN_LATE, '--config', configuration]);
    });
    after(clear);

    it('shows a client certificate to a registry that asks for one', () => serves('mutual-tls', nameOf('mutual')));

    it('sends the headers of a host to it alone, below the path that overrides /v2', async () => {
      await serves('headers', nameOf('headers'));
      const requests = front('secure').requests();
      expect(requests.map(({ path }) => path)).to.include(
        `/v2/hub/${TESTIMG_REPOSITORY}/manifests/multi?ns=${nameOf('headers')}`,
      );
      expect([...new Set(requests.map(({ headers }) => headers['x-tests']))]).to.deep.equal([HEADER]);
      front('secure').answerWith(404);
      front('source').forgetRequests();
      const namespace = await world.namespace('headers-not-sent');
      await create(namespace, 'arm64', nameOf('headers'), 'arm64');
      await world.eventuallyTolerates(namespace, 'arm64', ours('arm64'));
      const sent = front('source').requests();
      expect(sent).to.not.deep.equal([]);
      expect(sent.filter(({ headers }) => 'x-tests' in headers)).to.deep.equal([]);
    });

    it('asks no host for a tag that may not resolve', async () => {
      front('mirror').forgetRequests();
      await serves('digests', nameOf('digests'));
      const tags = front('mirror')
        .requests()
        .filter(({ path }) => path.includes('/manifests/multi'));
      expect(tags).to.deep.equal([]);
    });

    it('skips verification where the file says so', () => serves('skip-verify', nameOf('unverified')));

    it('asks the registry itself last where no server is named', async () => {
      await serves('appended', front('appended').host);
      expect(front('missing').requests()).to.not.deep.equal([]);
    });

    it('verifies by registries.caFile', () => serves('ca-file', trusted.host));

    it('names the certificate as the problem of a registry that nobody vouches for', async () => {
      const namespace = await world.namespace('untrusted');
      await create(namespace, 'named', nameOf('untrusted'));
      await create(namespace, 'unnamed', stranger.host);
      for (const host of [nameOf('untrusted'), stranger.host]) {
        await world.eventuallyEvent(namespace, 'ImageUnresolvable', new RegExp(`${host}.*certificate`, 's'));
      }
    });

    it('names the key for a registry that speaks plain http', async () => {
      const namespace = await world.namespace('plain-http');
      const { host } = front('missing');
      await create(namespace, 'plain', host);
      await world.eventuallyEvent(
        namespace,
        'ImageUnresolvable',
        new RegExp(`${host} does not speak TLS .*registries\\.insecure: \\["${host}"\\] allows it`, 's'),
      );
    });

    it('reads a hosts.toml again that has changed', async () => {
      const namespace = await world.namespace('hosts-changed');
      await places.file(`certs.d/${nameOf('untrusted')}/hosts.toml`, `server = "${front('mirror').url}"\n`);
      await create(namespace, 'multi', nameOf('untrusted'));
      await world.eventuallyTolerates(namespace, 'multi', BOTH);
      expect(controller.logs().join('\n')).to.not.include(HEADER);
    });

    it('asks the hosts of _default for any registry', async () => {
      await clear();
      await world.run([...OPEN_LATE, '--registries.containerdConfigDirectory', join(places.directory, 'default.d')]);
      await serves('default-hosts', nameOf('any'));
      const paths = front('mirror')
        .requests()
        .map(({ path }) => path);
      expect(paths).to.include(`/v2/${TESTIMG_REPOSITORY}/manifests/multi?ns=${nameOf('any')}`);
    });
  });

  describe('behind a proxy', () => {
    const [SECURE, DIRECT] = ['secure.example.test', 'direct.example.test'];
    let proxy: ForwardProxyServer;
    let controller: RunningController;

    before(async () => {
      const front = await places.front({ authority, names: [SECURE, DIRECT] });
      proxy = await startForwardProxy({ login: `${account.username}:proxied`, dial: () => front.host });
      const caFile = await places.file('authority.crt', authority.certificate);
      const environment = {
        HTTPS_PROXY: `http://${account.username}:proxied@${proxy.host}`,
        NO_PROXY: `${DIRECT},10.0.0.0/8`,
      };
      controller = await world.run([...OPEN_LATE, '--registries.caFile', caFile], { environment });
    });
    after(async () => {
      await clear();
      await proxy.stop();
    });

    it('asks registries through HTTPS_PROXY, and those of NO_PROXY directly', async () => {
      await serves('proxied', SECURE);
      const namespace = await world.namespace('not-proxied');
      await create(namespace, 'direct', DIRECT);
      // There is no such name: it was looked up, which the proxy would have done.
      await world.eventuallyEvent(namespace, 'ImageUnresolvable', new RegExp(`${DIRECT} was not found in the DNS`));
      expect([...new Set(proxy.targets)]).to.deep.equal([`CONNECT ${SECURE}:443`]);
    });

    it('asks a registry on our own machine, and the API server, without it', async () => {
      await serves('beside-proxy', world.registry.host);
      expect([...new Set(proxy.targets)]).to.deep.equal([`CONNECT ${SECURE}:443`]);
      expect(controller.logs().join('\n')).to.not.include('proxied@');
    });
  });
});
