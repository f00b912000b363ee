import { join } from 'node:path';
import { expect } from 'chai';
import { account } from '../../hack/cluster/account.ts';
import type { Front } from '../../hack/cluster/registry-front.ts';
import { ours } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';
import { imageAt } from '../support/world.ts';
import { arrange, base64, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

/** As ACR writes it beside an identity token. */
const NOBODY = '00000000-0000-0000-0000-000000000000:';

/** Each is a name for a private registry of which one source alone knows the credentials. */
const SOURCES = {
  auths: 'auths of a Docker configuration file',
  identity: 'an identity token of a Docker configuration file',
  helper: 'a credential helper for one host',
  store: 'a credential store for all hosts',
  toml: 'a TOML file of a directory',
  plugin: "a plug-in of the kubelet's",
};

const AUTH = { auth: base64(`${account.username}:${account.password}`) };

describe("the operator's credentials on the real control plane", () => {
  let world: LiveWorld;
  let places: Places;
  let controller: RunningController;
  const fronts = new Map<string, Front>();

  const hostOf = (name: string) => fronts.get(name)?.host ?? expect.fail(name);

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    const basic = await places.registry({ htpasswd: true });
    const bearer = await places.registry({ tokenAuth: true });
    for (const name of Object.keys(SOURCES)) {
      fronts.set(name, await places.front({ registry: name === 'identity' ? bearer : basic }));
    }
    world.allowInsecure(...[...fronts.values()].map(({ host }) => host));
    world.allowInsecure(new URL(bearer.tokenServer?.realm ?? '').host);
    controller = await world.run(['--images.fallbackAfter', '1h', '--config', await configure()], {
      environment: { PATH: `${join(places.directory, 'bin')}:${process.env.PATH}` },
    });
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });

  /** Writes all files that the operator's configuration names; returns the path of the configuration. */
  async function configure(): Promise<string> {
    const answer = JSON.stringify({ ServerURL: '', Username: account.username, Secret: account.password });
    const found = `grep -qx '${hostOf('store')}' && echo '${answer}'`;
    await places.file('bin/docker-credential-e2e', `#!/bin/sh\n[ "$1" = get ] && echo '${answer}'\n`, 0o700);
    const missing = "{ echo 'credentials not found in native keychain'; exit 1; }";
    await places.file('bin/docker-credential-e2e-store', `#!/bin/sh\n${found} || ${missing}\n`, 0o700);
    const response = {
      kind: 'CredentialProviderResponse',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      cacheKeyType: 'Registry',
      cacheDuration: '10m',
      auth: { [hostOf('plugin')]: { username: account.username, password: account.password } },
    };
    const plugin = `#!/bin/sh\necho '${JSON.stringify(response)}'\n`;
    await places.file('plugins/e2e-provider', plugin, 0o700);
    const provider = {
      name: 'e2e-provider',
      matchImages: [hostOf('plugin')],
      defaultCacheDuration: '1h',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    };
    const kubelet = {
      apiVersion: 'kubelet.config.k8s.io/v1',
      kind: 'CredentialProviderConfig',
      providers: [provider],
    };
    const docker = {
      auths: {
        [`https://${hostOf('auths')}/v1/`]: AUTH,
        [hostOf('identity')]: { auth: base64(NOBODY), identitytoken: account.identityToken },
      },
      credHelpers: { [hostOf('helper')]: 'e2e' },
    };
    return places.file('configuration.yaml', {
      credentials: {
        dockerConfigFiles: [
          await places.file('docker.json', JSON.stringify(docker)),
          await places.file('store.json', JSON.stringify({ credsStore: 'e2e-store' })),
        ],
        directory: await places.mount('toml', {
          [`${hostOf('toml')}.toml`]: `user = "${account.username}"\nsecret = "${account.password}"\n`,
        }),
        kubelet: {
          config: await places.file('kubelet.yaml', kubelet),
          binDirectory: join(places.directory, 'plugins'),
        },
      },
    });
  }

  for (const [name, source] of Object.entries(SOURCES)) {
    it(`of ${source} serve pods that bring none`, async () => {
      const namespace = await world.namespace(`by-${name}`);
      // An index, and a single manifest.
      for (const tag of ['multi', 'arm64']) {
        await world.create(pod(namespace, tag, { images: [imageAt(hostOf(name), tag)] }));
      }
      await world.eventuallyTolerates(namespace, 'multi', ours('amd64', 'arm64'));
      await world.eventuallyTolerates(namespace, 'arm64', ours('arm64'));
    });
  }

  it('leave no trace in the log', () => {
    const told = controller.logs().join('\n');
    expect(told).to.not.include(account.password).and.not.include(AUTH.auth).and.not.include(account.identityToken);
  });
});
