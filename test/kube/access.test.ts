import { rm, writeFile } from 'node:fs/promises';
import { delimiter } from 'node:path';
import { expect } from 'chai';
import { findCluster, KubeconfigError } from '../../src/kube/access.ts';
import { folderForEach } from '../support/folder.ts';

describe('finding the cluster', () => {
  const { at } = folderForEach();

  const SERVER = 'https://api.example.com:6443';
  const config = (server: string, cluster = 'c') => ({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': Buffer.from('ca').toString('base64') } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [
      { name: 'one', context: { cluster, user: 'u', namespace: 'ours' } },
      { name: 'two', context: { cluster: 'missing', user: 'u' } },
    ],
    'current-context': 'one',
  });
  const trusting = (file: string) => ({
    ...config(SERVER),
    clusters: [{ name: 'c', cluster: { server: SERVER, 'certificate-authority': file } }],
  });
  const proxied = (url: string) => ({
    ...config(SERVER),
    clusters: [{ name: 'c', cluster: { server: SERVER, 'proxy-url': url } }],
  });
  const written = async (content: unknown): Promise<string> => {
    const path = at('config');
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  /** The access of this user. */
  const accessAs = async (user: object) =>
    findCluster({ kubeconfig: await written({ ...config(SERVER), users: [{ name: 'u', user }] }) });
  const failure = (kubeconfig: string, context?: string): string => {
    try {
      findCluster({ kubeconfig, context });
    } catch (error) {
      return error instanceof KubeconfigError ? error.message : expect.fail(String(error));
    }
    return 'no failure';
  };

  it('reads server, namespace, authority and token of the current context', async () => {
    const access = findCluster({ kubeconfig: await written(config(`${SERVER}/`)) });
    expect(access).to.include({ server: SERVER, namespace: 'ours', inCluster: false });
    expect(String(access.tls().ca)).to.equal('ca');
    expect(await access.authenticate()).to.deep.equal({ authorization: 'Bearer t' });
  });

  it('accepts plain http, as kubectl proxy speaks it', async () => {
    const access = findCluster({ kubeconfig: await written(config('http://127.0.0.1:8001')) });
    expect(access.server).to.equal('http://127.0.0.1:8001');
    expect(await access.authenticate()).to.deep.equal({ authorization: 'Bearer t' });
  });

  const failures: readonly (readonly [what: string, content: unknown, context: string | undefined, told: RegExp])[] = [
    ['the contexts that exist', config(SERVER), 'three', /^--context: got "three", expected one of one, two$/],
    ['a context without a cluster', config(SERVER), 'two', /"two" names no cluster of the file; .* chooses another$/],
    ['what is not an address', config('api.test'), undefined, /"api\.test" is not an http or https address/],
    ['in one line why it cannot be read', 'clusters: [', undefined, /^kubeconfig .*config cannot be read: .*$/],
    [
      'which proxies can be used',
      proxied('u:secret@p'),
      undefined,
      /: proxy-url of cluster "c" is not an http, https or socks5 .*/,
    ],
    ['a missing certificate', trusting('/none/ca.crt'), undefined, /certificate or key cannot be read: .*ca\.crt/],
  ];
  for (const [what, content, context, told] of failures) {
    it(`says of a file ${what}`, async () => {
      expect(failure(await written(content), context))
        .to.match(told)
        .and.not.to.contain('\n');
    });
  }

  it('names a file that does not exist', () => {
    expect(failure('/nonexistent/config')).to.equal('--kubeconfig: /nonexistent/config does not exist');
  });

  for (const [command, args, why] of [
    ['/nonexistent/plugin', [], /cannot log in with \/nonexistent\/plugin: .*ENOENT$/],
    ['node', ['-e', 'process.exit(1)'], /cannot log in with node: it failed without a message$/],
    // As the AWS CLI does.
    [
      'node',
      ['-e', 'console.error("\\nThe session expired.\\nLog in."); process.exit(255)'],
      /: The session expired\.$/,
    ],
  ] as const) {
    it(`says in one line why a login by ${[command, ...args].join(' ')} failed`, async () => {
      const access = await accessAs({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command, args } });
      const error: unknown = await access.authenticate().catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(KubeconfigError);
      expect(String(error)).to.match(why).and.to.not.contain('\n');
    });
  }

  it('reads the files of KUBECONFIG as kubectl does: those that exist, and of each name and of the current context the first', async () => {
    const { KUBECONFIG } = process.env;
    const first = await written({ ...config(SERVER), users: [] });
    const second = at('second');
    const other = { ...config('https://other.example.com'), 'current-context': 'three' };
    const three = { name: 'three', context: { cluster: 'c', user: 'u', namespace: 'third' } };
    await writeFile(second, JSON.stringify({ ...other, contexts: [...other.contexts, three] }));
    try {
      process.env.KUBECONFIG = ['/nonexistent', '', first, second].join(delimiter);
      const access = findCluster({});
      expect(access).to.include({ server: SERVER, namespace: 'ours' });
      expect(await access.authenticate()).to.deep.equal({ authorization: 'Bearer t' });
      expect(findCluster({ context: 'three' })).to.include({ server: SERVER, namespace: 'third' });
      process.env.KUBECONFIG = '/nonexistent';
      expect(() => findCluster({})).to.throw(
        KubeconfigError,
        /no kubeconfig found: .*\(\/nonexistent does not exist\)/,
      );
    } finally {
      if (KUBECONFIG === undefined) delete process.env.KUBECONFIG;
      else process.env.KUBECONFIG = KUBECONFIG;
    }
  });

  it('takes the proxy of the kubeconfig, else that of the environment, as kubectl does', async () => {
    const { HTTPS_PROXY, NO_PROXY } = process.env;
    const proxyFor = async (cluster: unknown) => findCluster({ kubeconfig: await written(cluster) }).proxy;
    try {
      Object.assign(process.env, { HTTPS_PROXY: 'http://u:p@env:3128', NO_PROXY: '10.0.0.0/8' });
      const access = findCluster({ kubeconfig: await written(proxied('socks5://p:1080')) });
      expect(access.proxy).to.deep.equal({ uri: 'socks5://p:1080' });
      expect(await access.authenticate()).to.deep.equal({ authorization: 'Bearer t' });
      expect(await proxyFor(config(SERVER))).to.deep.equal({ uri: 'http://env:3128', token: 'Basic dTpw' });
      for (const direct of ['https://10.0.0.1:6443', 'https://127.0.0.1:6443', 'http://127.0.0.1:8001']) {
        expect(await proxyFor(config(direct)), direct).to.equal(undefined);
      }
      process.env.HTTPS_PROXY = 'ftp://u:secret@env';
      expect(failure(await written(config(SERVER)))).to.equal('HTTPS_PROXY: is neither an http:// nor an https:// URL');
    } finally {
      for (const [name, value] of Object.entries({ HTTPS_PROXY, NO_PROXY })) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  });

  it('reads a token file at each login, so that a refused token is not sent again', async () => {
    const tokenFile = at('token');
    const access = await accessAs({ 'auth-provider': { name: 'tokenFile', config: { tokenFile } } });
    for (const token of ['first', 'second']) {
      await writeFile(tokenFile, `${token}\n`);
      expect(await access.authenticate()).to.deep.equal({ authorization: `Bearer ${token}` });
    }
  });

  it('reads the tokenFile of a user, beside the kubeconfig, and not its token', async () => {
    const access = await accessAs({ token: 't', tokenFile: 'token' });
    await writeFile(at('token'), 'of the file\n');
    expect(await access.authenticate()).to.deep.equal({ authorization: 'Bearer of the file' });
  });

  it('does not take an empty token file for a login', async () => {
    const tokenFile = at('token');
    const access = await accessAs({ tokenFile });
    await writeFile(tokenFile, '\n');
    const error: unknown = await access.authenticate().catch((reason: unknown) => reason);
    expect(String(error)).to.equal(`KubeconfigError: kubeconfig: cannot log in: ${tokenFile} is empty`);
  });

  it('reads the file of the authority for each connection, and keeps what it had while there is no such file', async () => {
    const caFile = at('ca.crt');
    await writeFile(caFile, 'old');
    const access = findCluster({ kubeconfig: await written(trusting(caFile)) });
    const first = access.tls();
    expect(String(first.ca)).to.equal('old');
    expect(access.tls()).to.deep.equal(first);
    await writeFile(caFile, 'new');
    expect(String(access.tls().ca)).to.equal('new');
    await rm(caFile);
    expect(String(access.tls().ca)).to.equal('new');
  });
});
