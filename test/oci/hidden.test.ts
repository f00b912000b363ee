import { expect } from 'chai';
import { createRoutes } from '../../src/oci/endpoints/mirrors.ts';
import {
  failureOf,
  type Harness,
  INDEX,
  indexOf,
  never,
  pullSecret,
  reply,
  type ScriptedServer,
  startResolver,
  startServer,
  stopAfterEach,
} from './server.ts';

/** crane, docker and CRI-O log in at such a registry, because they ask the root of its API first. */
describe('a registry that hides what may not be read', () => {
  let server: ScriptedServer;
  let other: ScriptedServer;
  let harness: Harness;
  let status: number;
  beforeEach(async () => {
    [server, other] = await Promise.all([startServer(), startServer()]);
    status = 404;
    server.on('*', (request, response) => {
      const found = reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64')));
      const isRight = [basic('right'), 'Bearer t'].includes(request.headers.authorization ?? '');
      (isRight && !request.url?.includes('/missing/') ? found : reply(status))(request, response);
    });
    server.on('/v2/', reply(401, { 'www-authenticate': 'Basic realm="x"' }));
  });
  stopAfterEach();

  const basic = (user: string): string => `Basic ${Buffer.from(`${user}:x`).toString('base64')}`;
  function start(users: readonly string[], mirrors = {}): void {
    const insecure = [server.host, other.host];
    harness = startResolver(insecure, {
      endpointsOf: createRoutes({ mirrors, insecure, hosts: () => undefined }).endpointsOf,
      pullSecrets: async () => users.map((user) => pullSecret(user, { [server.host]: `${user}:x` })),
    });
  }
  const access = { namespace: 'default', pullSecrets: ['any'], always: false };
  const resolve = (image: string) => harness.resolver.resolve(`${server.host}/${image}`, access, never);
  const failure = (image: string) => failureOf(resolve(image));
  const asked = (): string[] =>
    server.asked.splice(0).map((line, index) => {
      const { authorization = 'nobody' } = server.headers[index] ?? {};
      const user = /^Basic (.*)$/.exec(authorization)?.[1];
      const name = user === undefined ? authorization : Buffer.from(user, 'base64').toString().split(':')[0];
      return `${line.replace('/manifests/latest', '')} ${name}`;
    });
  const forget = () => void server.headers.splice(0);

  for (const code of [403, 404]) {
    it(`by ${code} gets the pull secret after its root asked for it`, async () => {
      status = code;
      start(['right']);
      expect((await resolve('a/one')).platforms).to.have.length(1);
      expect(asked()).to.deep.equal(['GET /v2/a/one nobody', 'GET /v2/ nobody', 'GET /v2/a/one right']);
    });
  }

  it('is asked for its challenge once, whatever the number of images and of secrets', async () => {
    start(['wrong', 'right']);
    await Promise.all(['a/one', 'b/two', 'c/three'].map(resolve));
    expect(asked().filter((line) => line.startsWith('GET /v2/ '))).to.have.length(1);
    forget();
    await resolve('d/four');
    expect(asked()).to.deep.equal(['GET /v2/d/four right']);
    forget();
    harness.advance(600_000);
    await resolve('e/five');
    expect(asked()[1]).to.equal('GET /v2/ nobody');
  });

  it('gets a token where its root asks for one', async () => {
    server.on('/v2/', reply(401, { 'www-authenticate': `Bearer realm="http://${server.host}/token"` }));
    server.on('/token', reply(200, {}, '{"token":"t"}'));
    start(['right']);
    await resolve('a/one');
    expect(asked()).to.deep.equal([
      'GET /v2/a/one nobody',
      'GET /v2/ nobody',
      'GET /token?scope=repository%3Aa%2Fone%3Apull right',
      'GET /v2/a/one Bearer t',
    ]);
  });

  it('is believed if it says the same with the pull secret', async () => {
    start(['right']);
    expect(await failure('missing/one')).to.include({ code: 'not-found' });
  });

  it('gets one anonymous request if its root asks for no login, whatever the number of secrets', async () => {
    for (const root of [reply(200), reply(404), reply(401)]) {
      server.on('/v2/', root);
      start(['one', 'two', 'three', 'four', 'five']);
      expect(await failure('a/one')).to.include({ code: 'not-found' });
      expect(asked()).to.deep.equal(['GET /v2/a/one nobody', 'GET /v2/ nobody']);
      forget();
      expect(await failure('a/two')).to.include({ code: 'not-found' });
      expect(asked()).to.deep.equal(['GET /v2/a/two nobody']);
      forget();
    }
  });

  it('counts as it answered if its root cannot be asked', async () => {
    server.on('/v2/', (request) => request.socket.destroy());
    start(['right']);
    expect(await failure('a/one')).to.include({ code: 'not-found' });
  });

  it('is not asked for its root without a pull secret', async () => {
    start([]);
    expect(await failure('a/one')).to.include({ code: 'not-found' });
    expect(asked()).to.deep.equal(['GET /v2/a/one nobody']);
  });

  it('gets no credential because another host, to which its root redirects, asks for one', async () => {
    for (const challenge of ['Basic realm="x"', `Bearer realm="http://${other.host}/token"`]) {
      server.on('/v2/', reply(307, { location: `http://${other.host}/v2/` }));
      other.on('*', reply(401, { 'www-authenticate': challenge }));
      start(['right']);
      expect(await failure('a/one')).to.include({ code: 'not-found' });
      for (const { headers } of [server, other]) {
        expect(headers.map(({ authorization }) => authorization)).to.deep.equal(headers.map(() => undefined));
      }
      expect(other.asked.filter((line) => line.includes('right'))).to.deep.equal([]);
    }
  });

  it('gets no credential because another host, to which it redirects, hides something', async () => {
    other.on('*', reply(404));
    other.on('/v2/', reply(401, { 'www-authenticate': 'Basic realm="x"' }));
    server.on('/v2/a/one/manifests/latest', (request, response) =>
      reply(307, { location: `http://${other.host}${request.url}` })(request, response),
    );
    start(['right']);
    expect(await failure('a/one')).to.include({ code: 'not-found' });
    expect(asked()).to.deep.equal(['GET /v2/a/one nobody']);
    expect(other.headers.every(({ authorization }) => authorization === undefined)).to.equal(true);
  });
});
