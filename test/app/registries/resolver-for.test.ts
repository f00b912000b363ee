import { expect } from 'chai';
import { loadOperatorFiles, registryNames } from '../../../src/app/registries/operator-files.ts';
import { resolverFor } from '../../../src/app/registries/registries.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { Resolver } from '../../../src/oci/resolver.ts';
import { ANYONE, failureOf } from '../../oci/server.ts';

describe('the resolver of a configuration', () => {
  const end = new AbortController();
  after(() => end.abort());
  const configOf = (flags: Record<string, string> = {}) => loadConfig({ environment: {}, flags }).config;

  async function start(host: string, addresses: ReadonlySet<string>, flags = {}): Promise<Resolver> {
    const config = configOf(flags);
    const files = await loadOperatorFiles(config, systemClock, () => undefined);
    const { proxy: _, ...direct } = files;
    return resolverFor(config, systemClock, direct, {
      pullSecrets: async () => [],
      signal: end.signal,
      apiServer: { host, addresses: () => addresses },
    });
  }
  const failure = (resolver: Resolver, image: string) => failureOf(resolver.resolve(image, ANYONE, end.signal));

  it('does not contact the API server, by any name or present address', async () => {
    const addresses = new Set<string>();
    const resolver = await start('Api.Example.com:6443', addresses);
    addresses.add('10.9.8.7');
    const hosts = ['api.example.com:6443', 'api.example.com', '10.9.8.7:6443', '[::ffff:10.9.8.7]', 'kubernetes:443'];
    const names = ['', '.svc', '.svc.cluster.local'].map((end) => `kubernetes.default${end}`);
    for (const host of [...hosts, ...names]) {
      const error = await failure(resolver, `${host}/x/y:1`);
      expect(error, host).to.include({ code: 'forbidden-address', temporary: false });
      expect(error.message).to.contain('it is the API server').and.not.contain('10.9.8.7)');
    }
  });

  it('does not contact the API server by its address, even before the first connection to it', async () => {
    for (const [host, image] of [
      ['10.9.8.7:6443', '10.9.8.7/x/y:1'],
      ['[fd00::7]:6443', '[fd00::7]:5000/x/y:1'],
    ] as const) {
      const error = await failure(await start(host, new Set()), image);
      expect(error.message).to.contain('it is the API server');
    }
  });

  it('contacts that address if the configuration names a registry there', async () => {
    const name = 'localhost:1';
    const resolver = await start(name, new Set(['127.0.0.1']), { 'registries.insecure': `${name},127.0.0.1:1` });
    expect(await failure(resolver, `${name}/x/y:1`)).to.include({ code: 'unavailable' });
    expect(await failure(resolver, '127.0.0.1:1/x/y:1')).to.include({ code: 'unavailable' });
  });

  it('gives the registries that it names labels of their own in metrics', () => {
    const mirrors = { 'docker.io': { endpoints: ['http://Mirror.test:80/hub'] } };
    const config = configOf({ 'registries.mirrors': JSON.stringify(mirrors) });
    const namedHosts = () => new Set(['hosts-toml.test', 'mirror.test']);
    const names = ['docker.io', 'mirror.test:80/hub', 'hosts-toml.test', 'mirror.test'];
    expect(registryNames(config, { namedHosts })).to.include.members(names);
  });
});
