import { join } from 'node:path';
import { expect } from 'chai';
import { account } from '../../hack/cluster/account.ts';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { startForwardProxy } from '../support/forward-proxy.ts';
import { ours } from '../support/objects.ts';
import { pod } from '../support/workloads.ts';
import { imageAt } from '../support/world.ts';
import { arrange, type Places } from './support/places.ts';
import { worldForAll } from './support/world.ts';

const OPEN_LATE = ['--images.fallbackAfter', '1h'];

describe('registries as production has them, on the real control plane', () => {
  const world = worldForAll();
  let places: Places;

  before(async () => {
    places = await arrange(world);
  });
  afterEach(() => world.stopControllers());

  const create = (namespace: string, host: string) =>
    world.create(pod(namespace, 'multi', { images: [imageAt(host, 'multi')] }));

  /** One pod of `multi` at this host, in a namespace of its own, which has to be served. */
  async function serves(name: string, host: string): Promise<void> {
    const namespace = await world.namespace(name);
    await create(namespace, host);
    await world.eventuallyTolerates(namespace, 'multi', ours('amd64', 'arm64'));
  }

  it('are served by a pull-through cache, which logs in for us, and by a mirror before the registry itself', async () => {
    const basic = await places.registry({ htpasswd: true });
    const pullThrough = await places.registry({ mirrorOf: { url: basic.url, account } });
    const [cached, mirrored, mirror] = [await places.front(), await places.front(), await places.front()];
    world.allowInsecure(cached.host, mirrored.host);
    const config = await places.file('mirrors.yaml', {
      registries: {
        mirrors: {
          [cached.host]: { endpoints: [pullThrough.url] },
          [mirrored.host]: { endpoints: [`http://${mirror.host}`] },
        },
      },
    });
    await world.run([...OPEN_LATE, '--config', config]);
    await serves('pull-through', cached.host);
    const agents = (await basic.requests()).map(({ userAgent }) => userAgent);
    expect(agents.filter((agent) => agent.startsWith('archaware-controller'))).to.deep.equal([]);
    await serves('mirror', mirrored.host);
    const namespace = encodeURIComponent(mirrored.host);
    const paths = mirror.requests().map(({ path }) => path);
    expect(paths).to.include(`/v2/${TESTIMG_REPOSITORY}/manifests/multi?ns=${namespace}`);
    expect([...cached.requests(), ...mirrored.requests()]).to.deep.equal([]);
  });

  it("are asked with the certificates of registries.caFile and of containerd's hosts.toml, a client certificate too", async () => {
    const trusted = await places.registry({ tls: true });
    const mutual = await places.registry({ tls: 'mutual' });
    const stranger = await places.front(createAuthority('nobody knows it'));
    const { certificate = '', key = '' } = mutual.client ?? {};
    const toml = `server = "${mutual.url}"\nca = "${mutual.caFile}"\nclient = [["${certificate}", "${key}"]]\n`;
    await places.file('certs.d/mutual.example.test/hosts.toml', toml);
    const config = await places.file('hosts.yaml', {
      registries: {
        containerdConfigDirectory: join(places.directory, 'certs.d'),
        caFile: trusted.caFile,
        addresses: { allow: ['127.0.0.0/8'] },
      },
    });
    await world.run([...OPEN_LATE, '--config', config]);
    await serves('mutual-tls', 'mutual.example.test');
    await serves('ca-file', trusted.host);
    const namespace = await world.namespace('untrusted');
    await create(namespace, stranger.host);
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', new RegExp(`${stranger.host}.*certificate`, 's'));
  });

  it('are asked through HTTPS_PROXY, those of NO_PROXY and the API server without it', async () => {
    const [SECURE, DIRECT] = ['secure.example.test', 'direct.example.test'];
    const authority = createAuthority('archaware test front authority');
    const front = await places.front(authority, SECURE, DIRECT);
    const proxy = await startForwardProxy({ login: `${account.username}:proxied`, dial: () => front.host });
    const caFile = await places.file('authority.crt', authority.certificate);
    const environment = {
      HTTPS_PROXY: `http://${account.username}:proxied@${proxy.host}`,
      NO_PROXY: `${DIRECT},10.0.0.0/8`,
    };
    const controller = await world.run([...OPEN_LATE, '--registries.caFile', caFile], { environment });
    await serves('proxied', SECURE);
    const namespace = await world.namespace('not-proxied');
    await create(namespace, DIRECT);
    // There is no such name: it was looked up, which the proxy would have done.
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', new RegExp(`${DIRECT} was not found in the DNS`));
    await serves('beside-proxy', world.registry.host);
    expect([...new Set(proxy.targets)]).to.deep.equal([`CONNECT ${SECURE}:443`]);
    expect(controller.logs().join('\n')).to.not.include('proxied@');
    await proxy.stop();
  });
});
