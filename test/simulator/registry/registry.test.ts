import { assert } from 'chai';
import { Agent, type Dispatcher, request } from 'undici';
import { MEDIA_TYPES } from '../../../testimg/build.ts';
import { startTestRegistry, type TestRegistry, type TestRegistryOptions } from './registry.ts';

const ACCEPT = Object.values(MEDIA_TYPES).join(', ');

describe('the test registry', () => {
  let registry: TestRegistry | undefined;
  let agent = new Agent();
  beforeEach(() => {
    agent = new Agent();
  });
  afterEach(async () => {
    await registry?.stop();
    await agent.destroy();
  });

  async function start(options: TestRegistryOptions = {}): Promise<TestRegistry> {
    registry = await startTestRegistry(options);
    return registry;
  }

  async function get(path: string, headers: Record<string, string> = {}, method: Dispatcher.HttpMethod = 'GET') {
    const url = `http://${registry?.host}${path}`;
    const response = await request(url, { method, headers: { accept: ACCEPT, ...headers }, dispatcher: agent });
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  }

  function basic(name: string, password: string): { authorization: string } {
    return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` };
  }

  it('answers HEAD, GET and a conditional GET of a tag', async () => {
    const digest = (await start()).put('team/app', 'v1', ['amd64', 'arm/v7', 'windows/amd64']);
    const head = await get('/v2/team/app/manifests/v1', {}, 'HEAD');
    assert.equal(head.headers['docker-content-digest'], digest);
    const full = await get('/v2/team/app/manifests/v1');
    assert.deepEqual(
      JSON.parse(full.text).manifests.map((entry: { platform: unknown }) => entry.platform),
      [
        { os: 'linux', architecture: 'amd64' },
        { os: 'linux', architecture: 'arm', variant: 'v7' },
        { os: 'windows', architecture: 'amd64' },
      ],
    );
    assert.equal((await get('/v2/team/app/manifests/v1', { 'if-none-match': `"${digest}"` })).status, 304);
    assert.equal((await get('/v2/team/app/manifests/v2')).status, 404);
  });

  it('answers a client that accepts no index as distribution does', async () => {
    await start().then((to) => to.put('team/app', 'v1', ['amd64']));
    const answer = await get('/v2/team/app/manifests/v1', { accept: '*/*' });
    assert.equal(answer.status, 404);
    assert.include(answer.text, 'MANIFEST_UNKNOWN');
  });

  it('omits digests and refuses HEAD on request', async () => {
    (await start({ digestHeader: false, headSupported: false })).put('team/app', 'v1', ['amd64'], { single: true });
    assert.isUndefined((await get('/v2/team/app/manifests/v1')).headers['docker-content-digest']);
    assert.equal((await get('/v2/team/app/manifests/v1', {}, 'HEAD')).status, 405);
  });

  it('gives tokens to anyone for public repositories, and for private ones to their readers', async () => {
    const to = await start({ auth: 'bearer', users: { ann: 'a', bob: 'b' } });
    to.put('team/open', 'v1', ['amd64']);
    to.put('team/closed', 'v1', ['amd64']);
    to.makePrivate('team/closed', ['ann']);
    const challenge = String((await get('/v2/team/closed/manifests/v1')).headers['www-authenticate']);
    assert.include(challenge, `Bearer realm="http://${to.host}/token",service="test-registry"`);

    async function pull(repository: string, credentials: Record<string, string>): Promise<number> {
      const answer = await get(`/token?service=test-registry&scope=repository:${repository}:pull`, credentials);
      if (answer.status !== 200) return answer.status;
      const { token } = JSON.parse(answer.text);
      return (await get(`/v2/${repository}/manifests/v1`, { authorization: `Bearer ${token}` })).status;
    }
    assert.equal(await pull('team/open', {}), 200);
    assert.equal(await pull('team/closed', {}), 401);
    assert.equal(await pull('team/closed', basic('ann', 'a')), 200);
    assert.equal(await pull('team/closed', basic('bob', 'b')), 401);
    assert.equal(await pull('team/open', basic('ann', 'wrong')), 401);
  });

  it('asks for a name and a password, and distinguishes unknown users from those without the right', async () => {
    const to = await start({ auth: 'basic', users: { ann: 'a', bob: 'b' } });
    to.put('team/closed', 'v1', ['amd64']);
    to.makePrivate('team/closed', ['ann']);
    const path = '/v2/team/closed/manifests/v1';
    assert.equal((await get(path)).headers['www-authenticate'], 'Basic realm="test-registry"');
    assert.equal((await get(path, basic('ann', 'a'))).status, 200);
    assert.equal((await get(path, basic('bob', 'b'))).status, 403);
  });

  it('has recorded a request when it is answered', async () => {
    await start();
    await get('/v2/?ns=docker.io', { 'user-agent': 'me', ...basic('a', 'b') });
    assert.deepEqual(registry?.requests(), [
      {
        method: 'GET',
        path: '/v2/',
        query: '?ns=docker.io',
        status: 200,
        authorization: 'basic',
        accept: ACCEPT,
        userAgent: 'me',
      },
    ]);
    registry?.clearRequests();
    assert.isEmpty(registry?.requests());
  });

  it('fails as often as requested', async () => {
    const to = await start();
    to.inject({ kind: 'status', status: 429, retryAfter: '7' }, { path: /^\/v2\/$/, times: 1 });
    const limited = await get('/v2/');
    assert.equal(limited.status, 429);
    assert.equal(limited.headers['retry-after'], '7');
    assert.equal((await get('/v2/')).status, 200);
  });

  it('spoils bodies and digests', async () => {
    const to = await start();
    const digest = to.put('team/app', 'v1', ['amd64']);
    const good = await get('/v2/team/app/manifests/v1');
    const undo = to.inject({ kind: 'corrupt' });
    const corrupt = await get('/v2/team/app/manifests/v1');
    assert.notEqual(corrupt.text, good.text);
    assert.deepEqual(JSON.parse(corrupt.text), JSON.parse(good.text));
    undo();
    to.inject({ kind: 'wrong-digest' }, { times: 1 });
    assert.notEqual((await get('/v2/team/app/manifests/v1')).headers['docker-content-digest'], digest);
    to.inject({ kind: 'content-type', type: 'text/html' }, { times: 1 });
    const mistyped = await get('/v2/team/app/manifests/v1');
    assert.deepEqual([mistyped.headers['content-type'], mistyped.text], ['text/html', good.text]);
    to.inject({ kind: 'truncate' }, { times: 1 });
    assert.instanceOf(await get('/v2/team/app/manifests/v1').catch((error: unknown) => error), Error);
    to.inject({ kind: 'drip', ms: 1 }, { times: 1 });
    assert.equal((await get('/v2/team/app/manifests/v1')).text, good.text);
  });

  it('stops, comes back at the same port, and stops while a request hangs or is delayed', async () => {
    const to = await start();
    await to.down();
    assert.match(String(await get('/v2/').catch((error: unknown) => error)), /ECONNREFUSED|other side closed/);
    await to.up();
    assert.equal((await get('/v2/')).status, 200);
    to.inject({ kind: 'hang' }, { times: 1 });
    to.inject({ kind: 'delay', ms: 60_000 }, { method: 'HEAD' });
    const pending = Promise.allSettled([get('/v2/'), get('/v2/', {}, 'HEAD')]);
    while (to.requests().length < 3) await new Promise((resolve) => setImmediate(resolve));
    await to.stop();
    for (const { status } of await pending) assert.equal(status, 'rejected');
  });
});
