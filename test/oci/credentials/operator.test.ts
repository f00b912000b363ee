import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createOperatorCredentials, type OperatorCredentialsOptions } from '../../../src/oci/credentials/operator.ts';
import { programsForEach } from '../../support/credential-programs.ts';
import { folderForEach } from '../../support/folder.ts';
import { mount } from '../../support/mounted.ts';
import { needsPosix } from '../../support/platforms.ts';
import { never } from '../server.ts';

const auth = (login: string): { auth: string } => ({ auth: Buffer.from(login).toString('base64') });

describe("the operator's credentials", () => {
  const { at } = folderForEach();
  const programs = programsForEach();
  const write = (name: string, content: unknown): Promise<void> =>
    writeFile(at(name), typeof content === 'string' ? content : JSON.stringify(content));
  const providers = (...list: object[]): object => ({
    apiVersion: 'kubelet.config.k8s.io/v1',
    kind: 'CredentialProviderConfig',
    providers: list.map((each) => ({
      matchImages: ['*.example.com'],
      defaultCacheDuration: '1h',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      ...each,
    })),
  });

  /** A plug-in whose login is its name. */
  const writePlugin = (name: string, password = 'x'): Promise<void> =>
    programs().plugin(name, { cacheKeyType: 'Image', auth: { '*.example.com': { username: name, password } } });
  const inKubelet = (name: string) => ({ kubelet: { config: at(name), binDirectory: programs().bin } });

  function setup(options: Partial<OperatorCredentialsOptions> = {}) {
    const told: string[] = [];
    let time = 0;
    const credentials = createOperatorCredentials({
      dockerConfigFiles: [],
      directory: '',
      kubelet: { config: '', binDirectory: '' },
      timeoutMs: 30_000,
      now: () => time,
      onProblem: (source, problem) => told.push(`${source}: ${problem}`),
      ...options,
    });
    return {
      ...credentials,
      told,
      users: async (name: string) =>
        (await credentials.lookup(name, never, createAskers('shop'))).map(({ username }) => username),
      problems: async () => (await credentials.reload()).map(({ key, file, problem }) => `${key} ${file}: ${problem}`),
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  }

  it('are none if nothing is configured', async () => {
    const { users, problems, paths } = setup({ dockerConfigFiles: [''] });
    expect(await problems()).to.deep.equal([]);
    expect(await users('registry.example.com/app')).to.deep.equal([]);
    expect(paths).to.deep.equal([]);
  });

  it('name a plug-in for the service accounts of pods, which is never run and needs no program, beside another one', async function () {
    needsPosix(this, 'program');
    const tokenAttributes = { serviceAccountTokenAudience: 'r', cacheType: 'Token', requireServiceAccount: true };
    await write('providers.yaml', providers({ name: 'of-pods', tokenAttributes }, { name: 'plugin' }));
    await writePlugin('plugin');
    const { users, problems, providerForPods } = setup(inKubelet('providers.yaml'));
    expect(providerForPods('registry.example.com/app'), 'before reload').to.equal(undefined);
    expect(await problems()).to.deep.equal([]);
    expect(await users('registry.example.com/app')).to.deep.equal(['plugin']);
    expect(providerForPods('registry.example.com/app')).to.equal('of-pods');
    expect(providerForPods('quay.io/app')).to.equal(undefined);
  });

  it('are those of all sources that may match, and nothing is read before reload', async function () {
    needsPosix(this, 'program');
    await write('a.json', {
      auths: { 'registry.example.com': auth('a:x'), 'quay.io': auth('other:x') },
      credsStore: 'store',
    });
    await write('b.json', { auths: { '*.example.com/team': auth('b:x') }, credHelpers: { 'quay.io': 'nothing' } });
    await mkdir(at('toml'));
    await write('toml/registry.example.com.toml', 'user = "toml"\nsecret = "x"');
    await write('providers.yaml', providers({ name: 'plugin' }));
    await programs().helper('store', { 'registry.example.com': { username: 'helper', secret: 'x' } });
    await programs().plugin('plugin', {
      cacheKeyType: 'Image',
      auth: { '*.example.com': { username: 'plugin', password: 'x' }, 'quay.io': { username: 'other', password: 'x' } },
    });
    const { users, problems, paths, told } = setup({
      dockerConfigFiles: [at('a.json'), at('b.json')],
      directory: at('toml'),
      ...inKubelet('providers.yaml'),
    });
    expect(paths).to.deep.equal(['a.json', 'b.json', 'toml', 'providers.yaml'].map((name) => at(name)));
    expect(await users('registry.example.com/team/app')).to.deep.equal([]);
    expect(await problems()).to.deep.equal([]);
    expect(await users('registry.example.com/team/app')).to.deep.equal(['a', 'b', 'toml', 'helper', 'plugin']);
    expect(await users('registry.example.com/app')).to.deep.equal(['a', 'toml', 'helper', 'plugin']);
    expect(await users('ample.com/app')).to.deep.equal([]);
    expect(told).to.deep.equal([]);
  });

  describe('of a directory of the kubelet', () => {
    beforeEach(async function () {
      needsPosix(this, 'program');
      await mkdir(at('kubelet'));
      for (const name of ['one', 'two', 'three']) await writePlugin(name);
    });

    it('are those of its *.json, *.yaml and *.yml files, in the order of their names', async () => {
      await write('kubelet/b.yaml', providers({ name: 'two' }));
      await write('kubelet/a.yml', providers());
      await write('target', providers({ name: 'one' }));
      await symlink('../target', at('kubelet/a.json'));
      await write('kubelet/c.json', providers({ name: 'three' }));
      await write('kubelet/readme.md', 'hunter2');
      await mkdir(at('kubelet/d.yaml'));
      const { users, problems, paths } = setup(inKubelet('kubelet'));
      expect(await problems()).to.deep.equal([]);
      expect(paths).to.deep.equal([at('kubelet')]);
      expect(await users('registry.example.com/app')).to.deep.equal(['one', 'two', 'three']);

      await unlink(at('kubelet/b.yaml'));
      await problems();
      expect(await users('registry.example.com/app')).to.deep.equal(['one', 'three']);
    });

    const wrong: [what: string, files: Record<string, unknown>, problem: string, file?: string][] = [
      ['no such file', { 'a.txt': providers({ name: 'one' }) }, 'it has no file *.json, *.yaml or *.yml'],
      ['no provider', { 'a.json': providers() }, 'providers must be a list with at least one entry'],
      [
        'a name in two files',
        { 'a.json': providers({ name: 'one' }), 'b.yaml': providers({ name: 'one' }) },
        'providers: the name "one" is given twice',
      ],
      [
        'a broken file',
        { 'a.json': providers({ name: 'one' }), 'b.yml': 'hunter2' },
        'it is not a CredentialProviderConfig',
        'kubelet/b.yml',
      ],
    ];
    for (const [what, files, problem, file = 'kubelet'] of wrong) {
      it(`are refused with ${what}, and the last ones stay`, async () => {
        await write('kubelet/z.yaml', providers({ name: 'three' }));
        const { users, problems } = setup(inKubelet('kubelet'));
        await problems();
        await unlink(at('kubelet/z.yaml'));
        for (const [name, content] of Object.entries(files)) await write(`kubelet/${name}`, content);
        expect(await problems()).to.deep.equal([`credentials.kubelet.config ${at(file)}: ${problem}`]);
        expect(await users('registry.example.com/app')).to.deep.equal(['three']);
      });
    }
  });

  it("include Docker Hub's under all of its names, for a caller that knows every source", async () => {
    await write('a.json', { auths: { 'https://index.docker.io/v1/': auth('old:x'), 'docker.io': auth('new:x') } });
    const { users, problems } = setup({ dockerConfigFiles: [at('a.json')] });
    await problems();
    expect(await users('docker.io/library/nginx')).to.deep.equal(['old', 'new']);
  });

  it('ask the helper of the host, and the store for all other hosts', async function () {
    needsPosix(this, 'program');
    const config = {
      credsStore: 'store',
      credHelpers: { 'registry.example.com': 'own', 'none.example.com': '', 'index.docker.io': 'hub' },
    };
    await write('a.json', config);
    await write('b.json', config);
    for (const name of ['store', 'own', 'hub']) await programs().helper(name, {});
    const { users, problems } = setup({ dockerConfigFiles: [at('a.json'), at('b.json')] });
    await problems();
    const hosts = ['registry.example.com', 'none.example.com', 'docker.io', 'quay.io', 'registry.example.com:5000'];
    for (const host of hosts) await users(`${host}/team/app`);
    const asked = (await programs().calls()).map(
      ({ program, stdin }) => `${program.replace('docker-credential-', '')} ${stdin}`,
    );
    expect(asked).to.deep.equal([
      'own registry.example.com',
      'hub https://index.docker.io/v1/',
      'store quay.io',
      'store registry.example.com:5000',
    ]);
  });

  it('read a file once even if it is named twice', async () => {
    const { problems, paths } = setup({ dockerConfigFiles: [at('gone.json'), at('gone.json')] });
    expect(paths).to.deep.equal([at('gone.json')]);
    expect(await problems()).to.have.length(1);
  });

  it('report what is wrong with a file, and keep its previous content', async function () {
    needsPosix(this, 'program');
    await write('a.json', { auths: { 'registry.example.com': auth('a:x') } });
    await mkdir(at('toml'));
    await write('toml/registry.example.com.toml', 'user = "toml"\nsecret = "x"');
    await write('providers.yaml', providers({ name: 'plugin' }));
    await writePlugin('plugin');
    const { users, problems } = setup({
      dockerConfigFiles: [at('a.json'), at('missing.json')],
      directory: at('toml'),
      ...inKubelet('providers.yaml'),
    });
    const missing = `credentials.dockerConfigFiles ${at('missing.json')}: cannot be read (ENOENT)`;
    expect(await problems()).to.deep.equal([missing]);

    await write('a.json', 'hunter2');
    await write('toml/registry.example.com.toml', 'hunter2');
    await mkdir(at('toml/docker.io.toml'));
    await symlink('nowhere', at('toml/ghcr.io.toml'));
    await write('toml/quay.io.toml', 'user = "new"\nsecret = "x"');
    await write('providers.yaml', providers({ name: 'plugin', args: 'x' }));
    const bad = [
      `credentials.dockerConfigFiles ${at('a.json')}: it is not a JSON object`,
      missing,
      `credentials.directory ${at('toml/docker.io.toml')}: is not a file`,
      `credentials.directory ${at('toml/ghcr.io.toml')}: cannot be read (ENOENT)`,
      `credentials.directory ${at('toml/registry.example.com.toml')}: line 1, column 1: incomplete key-value: cannot find end of key`,
      `credentials.kubelet.config ${at('providers.yaml')}: providers[0].args must be a list of strings`,
    ];
    expect(await problems()).to.deep.equal(bad);
    expect(await problems(), 'as long as it is so').to.deep.equal(bad);
    expect(await users('registry.example.com/app')).to.deep.equal(['a', 'toml', 'plugin']);
    expect(await users('quay.io/app')).to.deep.equal(['new']);

    await write('a.json', { auths: {} });
    for (const name of ['docker.io', 'ghcr.io', 'registry.example.com'])
      await rm(at(`toml/${name}.toml`), { recursive: true });
    await write('providers.yaml', providers({ name: 'plugin', matchImages: ['quay.io'] }));
    expect(await problems()).to.deep.equal([missing]);
    expect(await users('registry.example.com/app'), 'what is gone is gone').to.deep.equal([]);
  });

  it('keep those of a directory that cannot be read any more', async () => {
    await mkdir(at('toml'));
    await write('toml/quay.io.toml', 'user = "toml"\nsecret = "x"');
    const { users, problems } = setup({ directory: at('toml') });
    await problems();
    await rename(at('toml'), at('away'));
    expect(await problems()).to.deep.equal([`credentials.directory ${at('toml')}: cannot be read (ENOENT)`]);
    expect(await users('quay.io/app')).to.deep.equal(['toml']);
  });

  it('follow a mounted Secret whose link is swapped, and read nothing else there', async function () {
    needsPosix(this, 'link');
    const mountLogin = (user: string) => mount(at(), { 'quay.io.toml': `user = "${user}"\nsecret = "x"` });
    await mountLogin('one');
    for (const name of ['.ghcr.io.toml', 'ghcr.io.toml~', '.ghcr.io.toml.swp', 'README', 'ghcr.io.TOML']) {
      await write(name, 'hunter2');
    }
    const { users, problems } = setup({ directory: at() });
    expect(await problems()).to.deep.equal([]);
    expect(await users('quay.io/app')).to.deep.equal(['one']);
    await mountLogin('two');
    await problems();
    expect(await users('quay.io/app')).to.deep.equal(['two']);
  });

  const kubelet: [what: string, binDirectory: string, problem: string][] = [
    ['no directory of binaries', '', 'it needs credentials.kubelet.binDirectory, which is empty'],
    ['a missing plug-in', '/nowhere', 'the program of its provider "plugin" cannot be run from /nowhere (ENOENT)'],
  ];
  for (const [what, binDirectory, problem] of kubelet) {
    it(`report ${what}`, async () => {
      await write('providers.yaml', providers({ name: 'plugin' }));
      const { problems } = setup({ kubelet: { config: at('providers.yaml'), binDirectory } });
      expect(await problems()).to.deep.equal([`credentials.kubelet.config ${at('providers.yaml')}: ${problem}`]);
    });
  }

  it('ask a plug-in again if its configuration changed, and no other', async function () {
    needsPosix(this, 'program');
    for (const name of ['one', 'two']) await programs().plugin(name, { cacheKeyType: 'Global', auth: {} });
    const two = { name: 'two', args: ['a'] };
    await write('providers.yaml', providers({ name: 'one' }, two));
    const { users, problems } = setup(inKubelet('providers.yaml'));
    await problems();
    await users('registry.example.com/app');
    await write('providers.yaml', providers({ ...two, args: ['b'] }, { name: 'one' }));
    await problems();
    await users('registry.example.com/app');
    const asked = (await programs().calls()).map(({ program, args }) => [program, ...args].join(' '));
    expect(asked.sort()).to.deep.equal(['one', 'two a', 'two b']);
  });

  it('ask a helper again after the file that names it has changed', async function () {
    needsPosix(this, 'program');
    await programs().helper('store', {});
    await write('a.json', { credsStore: 'store' });
    const { users, problems } = setup({ dockerConfigFiles: [at('a.json')] });
    for (const content of [{ credsStore: 'store' }, { credsStore: 'store' }, { credsStore: 'store', auths: {} }]) {
      await write('a.json', content);
      await problems();
      await users('quay.io/app');
    }
    expect(await programs().calls()).to.have.length(2);
  });

  it('of a program are asked for again once they were refused, and the others of it are kept', async function () {
    needsPosix(this, 'program');
    await write('a.json', { credsStore: 'store' });
    await write('providers.yaml', providers({ name: 'plugin' }));
    const say = async (password: string): Promise<void> => {
      await programs().helper('store', { 'registry.example.com': { username: 'helper', secret: password } });
      await writePlugin('plugin', password);
    };
    await say('old');
    const { lookup, problems, advance } = setup({ dockerConfigFiles: [at('a.json')], ...inKubelet('providers.yaml') });
    await problems();
    const ask = () => lookup('registry.example.com/app', never, createAskers('shop'));
    const [helper, plugin] = await ask();
    await say('new');
    advance(30_000);
    helper?.onRefused?.();
    expect((await ask()).map(({ password }) => password)).to.deep.equal(['new', 'old']);
    plugin?.onRefused?.();
    expect((await ask()).map(({ password }) => password)).to.deep.equal(['new', 'new']);
  });

  it('skip a program that fails, and report each problem once until it has passed', async function () {
    needsPosix(this, 'program');
    await write('a.json', { auths: { 'registry.example.com': auth('a:x') }, credsStore: 'store' });
    await write('providers.yaml', providers({ name: 'plugin' }));
    const failing = (word: string): Promise<void> =>
      programs().program('plugin', `process.stderr.write('${word}'); end(1);`);
    await failing('first');
    const { users, problems, told, advance } = setup({
      dockerConfigFiles: [at('a.json')],
      ...inKubelet('providers.yaml'),
    });
    await problems();
    expect(await users('registry.example.com/app')).to.deep.equal(['a']);
    await users('registry.example.com/app');
    await users('other.example.com/app');
    const store = 'docker-credential-store: could not be started (ENOENT: it does not exist)';
    expect(told.splice(0).sort()).to.deep.equal([store, 'plugin: ended with code 1: first']);

    advance(10_000);
    await failing('second');
    await users('registry.example.com/app');
    expect(told.splice(0)).to.deep.equal(['plugin: ended with code 1: second']);

    advance(10_000);
    await programs().plugin('plugin', { cacheKeyType: 'Image', cacheDuration: '0', auth: {} });
    await users('registry.example.com/app');
    expect(told.splice(0)).to.deep.equal([]);
    await failing('second');
    await users('registry.example.com/app');
    expect(told.splice(0)).to.deep.equal(['plugin: ended with code 1: second']);
  });

  it('end with the caller, and so do their programs', async function () {
    needsPosix(this, 'program');
    await write('a.json', { credsStore: 'store' });
    await programs().program('docker-credential-store', 'setInterval(() => {}, 1000);');
    const { lookup, problems, told } = setup({ dockerConfigFiles: [at('a.json')] });
    await problems();
    const leaving = new AbortController();
    const looking = lookup('quay.io/app', leaving.signal, createAskers('shop')).catch((error: unknown) => error);
    leaving.abort(new Error('gone'));
    expect(await looking).to.include({ message: 'gone' });
    expect(told).to.deep.equal([]);
  });
});
