import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { account } from '../../hack/cluster/account.ts';
import type { Registry } from '../../hack/cluster/registry.ts';
import type { Front, FrontRequest } from '../../hack/cluster/registry-front.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { ours, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { pod } from '../support/workloads.ts';
import { imageAt } from '../support/world.ts';
import { arrange, base64, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const WRONG = 'not-the-right-horse';
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

const auth = (password: string = account.password) => ({ auth: base64(`${account.username}:${password}`) });
const passwords = (requests: readonly FrontRequest[]) => requests.flatMap(({ login }) => login?.password ?? []);

describe("the operator's credentials on the real control plane", () => {
  let world: LiveWorld;
  let places: Places;
  let controller: RunningController;
  /** A token server would let anybody pull from it. */
  let lenient: Registry;
  const fronts = new Map<string, Front>();

  function front(name: string): Front {
    const found = fronts.get(name);
    if (found === undefined) throw new Error(`no front ${name}`);
    return found;
  }
  const hostOf = (name: string) => front(name).host;
  const image = (name: string, tag: string) => imageAt(hostOf(name), tag);

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    const basic = await places.registry({ htpasswd: true });
    const bearer = await places.registry({ tokenAuth: true });
    lenient = await places.registry({ tokenAuth: { anonymousPull: true } });
    const own = ['changed', 'mounted', 'second', 'wrong', 'both'];
    for (const name of [...Object.keys(SOURCES), ...own]) {
      fronts.set(name, await places.front({ registry: name === 'identity' ? bearer : basic }));
    }
    fronts.set('guarded', await places.front({ registry: lenient }));
    world.allowInsecure(...[...fronts.values()].map(({ host }) => host));
    for (const { tokenServer } of [bearer, lenient]) world.allowInsecure(new URL(tokenServer?.realm ?? '').host);
    controller = await world.run(['--images.fallbackAfter', '1h', '--config', await configure()], {
      environment: { PATH: `${join(places.directory, 'bin')}:${process.env.PATH}` },
    });
  });
  after(async () => {
    await world?.stop();
    await places?.remove();
  });

  const changing = (password: string) => places.file('changed.json', JSON.stringify(changed(password)));
  const changed = (password: string) => ({ auths: { [hostOf('changed')]: auth(password) } });
  const mounting = (password: string) =>
    places.mount('toml', {
      [`${hostOf('toml')}.toml`]: toml(account.password),
      [`${hostOf('mounted')}.toml`]: toml(password),
    });
  const toml = (secret: string) => `user = "${account.username}"\nsecret = "${secret}"\n`;

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
    const plugin = `#!/bin/sh\n{ cat; echo; } >> "$0.log"\necho '${JSON.stringify(response)}'\n`;
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
        [`https://${hostOf('auths')}/v1/`]: auth(),
        [hostOf('identity')]: { auth: base64(NOBODY), identitytoken: account.identityToken },
        // The longer pattern is tried first.
        [`${hostOf('second')}/${TESTIMG_REPOSITORY}`]: auth(WRONG),
        [hostOf('second')]: auth(),
        [hostOf('wrong')]: auth(WRONG),
        [hostOf('both')]: auth(),
      },
      credHelpers: { [hostOf('helper')]: 'e2e' },
    };
    return places.file('configuration.yaml', {
      registries: { private: [`${hostOf('guarded')}/*`] },
      credentials: {
        dockerConfigFiles: [
          await places.file('docker.json', JSON.stringify(docker)),
          await places.file('store.json', JSON.stringify({ credsStore: 'e2e-store' })),
          await changing(WRONG),
        ],
        directory: await mounting(WRONG),
        kubelet: {
          config: await places.file('kubelet.yaml', kubelet),
          binDirectory: join(places.directory, 'plugins'),
        },
      },
    });
  }

  async function create(namespace: string, name: string, tag: string, pullSecrets: readonly string[] = []) {
    await world.create(pod(namespace, `${name}-${tag}`, { images: [image(name, tag)], pullSecrets }));
  }

  async function createPullSecret(namespace: string, name: string, host: string, password: string) {
    const config = base64(JSON.stringify({ auths: { [host]: auth(password) } }));
    await world.create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': config },
    });
  }

  for (const [name, source] of Object.entries(SOURCES)) {
    it(`of ${source} serve pods that bring none`, async () => {
      const namespace = await world.namespace(`by-${name}`);
      // An index, and a single manifest.
      for (const tag of ['multi', 'arm64']) await create(namespace, name, tag);
      await world.eventuallyTolerates(namespace, `${name}-multi`, ours('amd64', 'arm64'));
      await world.eventuallyTolerates(namespace, `${name}-arm64`, ours('arm64'));
    });
  }

  it('of a plug-in are kept for as long as it says, and it gets the image as the kubelet sends it', async () => {
    const namespace = await world.namespace('plugin-again');
    await create(namespace, 'plugin', 'wide');
    await world.eventually('the pod to be served', async () => {
      const found = await world.get('Pod', namespace, 'plugin-wide');
      return tolerations(found).length > 1;
    });
    const lines = (await readFile(join(places.directory, 'plugins', 'e2e-provider.log'), 'utf8')).trim().split('\n');
    expect(lines).to.have.lengthOf(1);
    const { kind, image: asked } = JSON.parse(lines[0] ?? '');
    expect(kind).to.equal('CredentialProviderRequest');
    expect(asked).to.match(new RegExp(`^${hostOf('plugin')}/${TESTIMG_REPOSITORY}`));
  });

  it('are tried one after another, and what worked for a repository comes first from then on', async () => {
    const namespace = await world.namespace('second-works');
    await create(namespace, 'second', 'multi');
    await world.eventuallyTolerates(namespace, 'second-multi', ours('amd64', 'arm64'));
    expect([...new Set(passwords(front('second').requests()))]).to.deep.equal([WRONG, account.password]);
    front('second').forgetRequests();
    await create(namespace, 'second', 'riscv64');
    await world.eventuallyTolerates(namespace, 'second-riscv64', ours('riscv64'));
    expect([...new Set(passwords(front('second').requests()))]).to.deep.equal([account.password]);
  });

  it('that were refused are not tried again at once', async () => {
    const namespace = await world.namespace('refused');
    await create(namespace, 'wrong', 'multi');
    const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /wide|multi/);
    expect(note).to.match(/\(denied\)/);
    const asked = front('wrong').requests();
    expect(passwords(asked)).to.include(WRONG);
    await create(namespace, 'wrong', 'wide');
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', /wide could not be resolved \(denied\)/);
    expect(front('wrong').requests()).to.have.lengthOf(asked.length);
  });

  it("come after the pod's own", async () => {
    const namespace = await world.namespace('own-first');
    await createPullSecret(namespace, 'own', hostOf('both'), 'of-the-pod');
    await create(namespace, 'both', 'multi', ['own']);
    await world.eventuallyTolerates(namespace, 'both-multi', ours('amd64', 'arm64'));
    expect([...new Set(passwords(front('both').requests()))]).to.deep.equal(['of-the-pod', account.password]);
  });

  it('or a pull secret are needed where registries.private says so, though anybody might ask', async () => {
    const namespace = await world.namespace('guarded');
    await create(namespace, 'guarded', 'multi');
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', /guarded|registries\.private/);
    expect(front('guarded').requests()).to.deep.equal([]);
    await createPullSecret(namespace, 'wrong', hostOf('guarded'), WRONG);
    await create(namespace, 'guarded', 'wide', ['wrong']);
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', /wide could not be resolved \(denied\)/);
    await createPullSecret(namespace, 'right', hostOf('guarded'), account.password);
    await create(namespace, 'guarded', 'arm64', ['right']);
    await world.eventuallyTolerates(namespace, 'guarded-arm64', ours('arm64'));
    const tokens = lenient.tokenServer?.requests() ?? [];
    expect(tokens.map(({ status }) => status)).to.include.members([401, 200]);
    expect(tokens.filter(({ user }) => user === undefined)).to.deep.equal([]);
    const anonymous = front('guarded')
      .requests()
      .filter(({ headers, status }) => headers.authorization === undefined && status !== 401);
    expect(anonymous).to.deep.equal([]);
  });

  it('are read again when their file changes, and pods that waited are served at once', async () => {
    const namespace = await world.namespace('file-changed');
    await create(namespace, 'changed', 'multi');
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(denied\)/);
    await changing(account.password);
    await world.eventuallyTolerates(namespace, 'changed-multi', ours('amd64', 'arm64'));
    // An unreadable change keeps the former content, and is reported.
    await places.file('changed.json', '{"auths": {');
    await world.eventually('the log to name the file', async () =>
      controller.logs().some((line) => line.includes(join(places.directory, 'changed.json'))),
    );
    await create(namespace, 'changed', 'arm64');
    await world.eventuallyTolerates(namespace, 'changed-arm64', ours('arm64'));
  });

  it('are read again when the Secret that is mounted changes', async () => {
    const namespace = await world.namespace('mount-changed');
    await create(namespace, 'mounted', 'multi');
    await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(denied\)/);
    await mounting(account.password);
    await world.eventuallyTolerates(namespace, 'mounted-multi', ours('amd64', 'arm64'));
  });

  it('that cannot be read at the start are an error that names key and file', async () => {
    const missing = join(places.directory, 'missing');
    const broken = await places.file('broken.json', '[]');
    const cases = [
      ['credentials.dockerConfigFiles', missing],
      ['credentials.dockerConfigFiles', broken],
      ['credentials.directory', missing],
    ] as const;
    for (const [key, path] of cases) {
      const { code, stderr } = await world.command(['inspect', world.image('multi'), `--${key}`, path]);
      expect(stderr).to.include(key).and.to.include(path);
      expect(code, stderr).to.equal(3);
    }
  });

  it('leave no trace in the log or in Events', async () => {
    const events = await Promise.all(
      ['ImageUnresolvable', 'PullSecretUnusable', 'ConfigurationRejected'].map((reason) => world.events('', reason)),
    );
    const told = [...controller.logs(), ...events.flat()].join('\n');
    expect(told).to.include('denied');
    const { username, password, identityToken } = account;
    for (const secret of [password, WRONG, 'of-the-pod']) {
      expect(told).to.not.include(secret);
      expect(told).to.not.include(base64(`${username}:${secret}`));
    }
    expect(told).to.not.include(identityToken);
  });
});
