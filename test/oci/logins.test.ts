import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import type { Resolution } from '../../src/oci/resolver.ts';
import {
  type Answer,
  byLogin,
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

const ACCESS: Access = { namespace: 'default', pullSecrets: ['wrong', 'right'], always: false };
const basic = (login: string): string => `Basic ${Buffer.from(login).toString('base64')}`;
const WRONG = basic('wrong:x');
const RIGHT = basic('right:x');
const FOUND = reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64')));

describe('several logins for one image', () => {
  let server: ScriptedServer;
  let harness: Harness;
  /** The token service's answers, by login. */
  let says: Map<string, Answer>;
  beforeEach(async () => {
    server = await startServer();
    says = new Map([[RIGHT, reply(200, {}, '{"token":"t"}')]]);
    server.on('/token', (request, response) =>
      (says.get(request.headers.authorization ?? 'nobody') ?? reply(401))(request, response),
    );
    server.on('/v2/app/manifests/v1', byLogin({ 'Bearer t': FOUND }, asksForToken()));
    start(['wrong:x', 'right:x']);
  });
  stopAfterEach();
  const asksForToken = () => reply(401, { 'www-authenticate': `Bearer realm="http://${server.host}/token"` });

  function start(logins: readonly string[], timeoutMs = 2000): void {
    harness = startResolver([server.host], {
      timeoutMs,
      pullSecrets: async () => logins.map((login) => pullSecret(login.split(':')[0] ?? '', { [server.host]: login })),
    });
  }
  const resolve = (name = 'app:v1'): Promise<Resolution> =>
    harness.resolver.resolve(`${server.host}/${name}`, ACCESS, never);
  const failure = () => failureOf(resolve());
  const page = reply(200, { 'content-type': 'text/html' }, '<html>please log in</html>');

  const answers: [what: string, answer: Answer, code: string, temporary: boolean][] = [
    ['a page for logging in', page, 'malformed', false],
    ['409', reply(409), 'unsupported', false],
    ['405', reply(405), 'denied', false],
    ['a redirect', reply(302, { location: '/login' }), 'denied', false],
    ['500', reply(500), 'unavailable', true],
    ['503', reply(503), 'unavailable', true],
  ];
  for (const [what, answer, code, temporary] of answers) {
    it(`are all tried where the token service answers ${what} to the first`, async () => {
      says.set(WRONG, answer);
      expect((await resolve()).platforms).to.have.length(1);
    });

    it(`and ${what} for each of them is ${code}`, async () => {
      for (const who of [WRONG, RIGHT]) says.set(who, answer);
      expect(await failure()).to.include({ code, temporary });
    });
  }

  it('are all tried where the token service does not answer the first', async () => {
    start(['wrong:x', 'right:x'], 500);
    says.set(WRONG, () => undefined);
    expect((await resolve()).platforms).to.have.length(1);
  });

  it('are all tried if the registry itself answers something else to the first', async () => {
    for (const answer of [reply(405), reply(409), reply(302), reply(302, { location: '/v2/app/manifests/v1' })]) {
      const known = { [WRONG]: answer, [RIGHT]: FOUND };
      server.on('/v2/app/manifests/v1', byLogin(known, reply(401, { 'www-authenticate': 'Basic realm="x"' })));
      start(['wrong:x', 'right:x']);
      expect((await resolve()).platforms).to.have.length(1);
    }
  });

  it('are not tried further while the registry itself fails: an outage gets no more requests than needed', async () => {
    server.on('/v2/app/manifests/v1', reply(503));
    expect(await failure()).to.include({ code: 'unavailable' });
    expect(server.asked).to.have.length(1);
  });

  it('report the failure of the first of them, if none works', async () => {
    says.set(WRONG, page);
    says.set(RIGHT, reply(401));
    expect((await failure()).message).to.include('answers without a token');
    says.set(WRONG, reply(401));
    says.set(RIGHT, page);
    harness.advance(60_000);
    expect(await failure()).to.include({ code: 'denied' });
  });

  it('are named in their order where all are refused, with the code that the registry gives and none of its text', async () => {
    says.set(RIGHT, reply(200, {}, '{"token":"other"}'));
    const refused = (code: string) => JSON.stringify({ errors: [{ code, message: 'Your token has expired' }] });
    server.on('/v2/app/manifests/v1', byLogin({ nobody: asksForToken() }, reply(403, {}, refused('DENIED'))));
    const error = await failure();
    expect(error.message).to.equal(
      `${server.host} refused the login of pull secret "wrong" (401), and the login of pull secret "right" (DENIED), and an anonymous request (401)`,
    );
    expect(error.login).to.deep.equal({ kind: 'pull secret', name: 'wrong' });
    expect(error.host).to.deep.equal({ name: server.host, is: 'token service' });
    // What is remembered of a refusal says the same.
    harness.advance(60_000);
    expect((await failure()).message).to.equal(error.message);
    expect((await failureOf(resolve('app:v1'))).message).to.equal(error.message);
  });

  it('are refused with a code of the specification or with the status, whatever else the answer says', async () => {
    for (const body of ['{"errors":[{"code":"<script>"}]}', '{"errors":7}', 'x'.repeat(100_000), '']) {
      const nobody = reply(401, { 'www-authenticate': 'Basic' });
      server.on('/v2/app/manifests/v1', byLogin({ nobody }, reply(403, {}, body)));
      start(['right:x']);
      expect((await failure()).message).to.equal(
        `${server.host} refused the login of pull secret "right" (403), and an anonymous request (401)`,
      );
    }
  });

  it('report a failure that may pass by itself first', async () => {
    says.set(WRONG, page);
    says.set(RIGHT, reply(503));
    expect(await failure()).to.include({ code: 'unavailable', temporary: true });
  });

  it('count once for the pause, however many meet the same outage of the token service', async () => {
    start(['a:x', 'b:x', 'c:x', 'd:x', 'e:x', 'f:x']);
    server.on('/token', reply(503));
    for (let turn = 1; turn <= 4; turn += 1) {
      const before = server.asked.length;
      expect(await failure()).to.include({ code: 'unavailable' });
      expect(server.asked.length - before, `lookup ${turn}`).to.be.greaterThan(1);
      harness.advance(1000 * 2 ** (turn - 1));
    }
  });
});

describe('a token service that supports only POST', () => {
  let server: ScriptedServer;
  let harness: Harness;
  let forms: string[];
  beforeEach(async () => {
    server = await startServer();
    forms = [];
    const challenge = { 'www-authenticate': `Bearer realm="http://${server.host}/token",service="s"` };
    server.on('*', byLogin({ 'Bearer t': FOUND }, reply(401, challenge)));
    harness = startResolver([server.host], {
      pullSecrets: async () => [pullSecret('s', { [server.host]: 'me:a&b=c' })],
    });
  });
  stopAfterEach();
  function answers(get: number, post: Answer): void {
    server.on('/token', async (request, response) => {
      if (request.method !== 'POST') return reply(get)(request, response);
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      forms.push(Buffer.concat(chunks).toString());
      post(request, response);
    });
  }
  const resolve = (name: string) =>
    harness.resolver.resolve(`${server.host}/${name}`, { ...ACCESS, pullSecrets: ['s'] }, never);
  const tokens = (): string[] =>
    server.asked.filter((line) => line.includes('/token')).map((line) => line.split(' ', 1)[0] ?? '');

  for (const status of [404, 405]) {
    it(`and answers GET with ${status} gets the password in a form, and from then on at once`, async () => {
      answers(status, reply(200, {}, '{"access_token":"t"}'));
      await resolve('app:v1');
      expect(tokens()).to.deep.equal(['GET', 'POST']);
      expect(forms).to.deep.equal([
        'grant_type=password&username=me&password=a%26b%3Dc' +
          '&service=s&scope=repository%3Aapp%3Apull&client_id=archaware-controller',
      ]);
      await resolve('other:v1');
      expect(tokens()).to.deep.equal(['GET', 'POST', 'POST']);
    });
  }

  it('is asked by GET again once it no longer supports POST', async () => {
    answers(405, reply(200, {}, '{"access_token":"t"}'));
    await resolve('app:v1');
    server.on('/token', (request, response) =>
      (request.method === 'POST' ? reply(405) : reply(200, {}, '{"token":"t"}'))(request, response),
    );
    await resolve('other:v1').catch(() => undefined);
    harness.advance(60_000);
    expect((await resolve('third:v1')).platforms).to.have.length(1);
  });

  it('is not asked by POST because a password is wrong', async () => {
    answers(401, reply(200, {}, '{"access_token":"t"}'));
    expect(await failureOf(resolve('app:v1'))).to.include({ code: 'denied' });
    expect(forms).to.deep.equal([]);
  });

  it('and answers both with 405 is denied', async () => {
    answers(405, reply(405));
    const error = await failureOf(resolve('app:v1'));
    expect(error).to.include({ code: 'denied', temporary: false });
    expect(String(error)).to.not.include('a&b=c');
  });
});

describe('a login of a program', () => {
  let server: ScriptedServer;
  let store: ScriptedServer;
  let harness: Harness | undefined;
  beforeEach(async () => {
    [server, store] = await Promise.all([startServer(), startServer()]);
  });
  stopAfterEach();

  const asksFor = (challenge: string, then: Answer): Answer =>
    byLogin({ nobody: reply(401, { 'www-authenticate': challenge }) }, then);
  const rows: [what: string, isRefused: boolean, manifest: () => Answer, token: Answer][] = [
    ['is refused with 401 as Basic', true, () => asksFor('Basic realm="x"', reply(401)), reply(404)],
    ['is refused with 403 as Basic', true, () => asksFor('Basic realm="x"', reply(403)), reply(404)],
    ['is refused by the token service', true, () => asksFor(bearer(), reply(403)), reply(401)],
    ['has a token that is refused', true, () => asksFor(bearer(), reply(403)), reply(200, {}, '{"token":"t"}')],
    ['is not asked for', false, () => reply(403), reply(404)],
    ['finds nothing', false, () => asksFor('Basic realm="x"', reply(404)), reply(404)],
    ['meets a failure', false, () => asksFor('Basic realm="x"', reply(503)), reply(404)],
    [
      'leads to a store that refuses',
      false,
      () => asksFor('Basic realm="x"', reply(307, { location: `http://${store.host}/x` })),
      reply(404),
    ],
  ];
  const bearer = () => `Bearer realm="http://${server.host}/token"`;
  for (const [what, isRefused, manifest, token] of rows) {
    it(`that ${what} is ${isRefused ? '' : 'not '}reported to the program's part`, async () => {
      server.on('/v2/app/manifests/v1', manifest());
      server.on('/token', token);
      store.on('*', reply(403));
      let refused = false;
      const onRefused = (): void => {
        refused = true;
      };
      const login = { username: 'me', password: 'hunter2', onRefused };
      harness = startResolver([server.host, store.host], {
        operator: async () => [{ pattern: server.host, ...login }],
      });
      await failureOf(harness.resolver.resolve(`${server.host}/app:v1`, ACCESS, never));
      expect(refused).to.equal(isRefused);
    });
  }
});
