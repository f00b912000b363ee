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

  it('answers a client that accepts no index as distribution does', async () => {
    await start().then((to) => to.put('team/app', 'v1', ['amd64']));
    const answer = await get('/v2/team/app/manifests/v1', { accept: '*/*' });
    assert.equal(answer.status, 404);
    assert.include(answer.text, 'MANIFEST_UNKNOWN');
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
});
