import { expect } from 'chai';
import { createRoutes } from '../../../src/oci/endpoints/mirrors.ts';
import type { RegistryRequest, RegistryResponse } from '../../../src/oci/http/transport.ts';
import { createRequests } from '../../../src/oci/lookup/request.ts';
import { ANYONE, never, pullSecret, reply, startResolver, startServer, stopAfterEach } from '../server.ts';
import { targetFor } from './target.ts';

/** Lists tags from these answers, one for each request; gives them with the paths that were asked. */
async function list(answers: readonly { body?: unknown; link?: string }[]) {
  const asked: RegistryRequest[] = [];
  const send = async (request: RegistryRequest): Promise<RegistryResponse> => {
    const { body = {}, link } = answers[asked.length] ?? answers.at(-1) ?? {};
    asked.push(request);
    const headers = link === undefined ? {} : { link };
    return { status: 200, headers, body: Buffer.from(JSON.stringify(body)), url: request.url };
  };
  const task = { ...targetFor('r.example.com/shop/web:1'), credential: undefined, isPrivate: false, signal: never };
  const { tags } = createRequests({ send, now: () => 0 });
  const result = await tags(task).catch((error: unknown) => error);
  return { result, paths: asked.map(({ url }) => `${url.host}${url.pathname}${url.search}`) };
}

describe('the tags of a repository', () => {
  stopAfterEach();

  it('are what the registry lists, without what cannot be a tag', async () => {
    const { result, paths } = await list([{ body: { tags: ['1', 'a b', '../x', 7, 'v2'] } }]);
    expect(result).to.deep.equal(['1', 'v2']);
    expect(paths).to.deep.equal(['r.example.com/v2/shop/web/tags/list?n=1000']);
  });

  it('follow pages at the same host only', async () => {
    const { result, paths } = await list([
      { body: { tags: ['1'] }, link: '<https://evil.example/v2/x/tags/list?last=1&n=1>; rel="next"' },
      { body: { tags: ['2'] } },
    ]);
    expect(result).to.deep.equal(['1', '2']);
    expect(paths[1]).to.equal('r.example.com/v2/shop/web/tags/list?n=1000&last=1');
  });

  it('end after a few pages, also where the registry goes on for ever', async () => {
    let count = 0;
    const answers = Array.from({ length: 50 }, () => {
      count += 1;
      return { body: { tags: [`t${count}`] }, link: `</v2/x/tags/list?last=t${count}>; rel="next"` };
    });
    expect((await list(answers)).paths.length).to.equal(5);
  });

  it('are empty where the registry says null, and refused where it sends something else', async () => {
    expect((await list([{ body: { tags: null } }])).result).to.deep.equal([]);
    expect((await list([{ body: { tags: 'x' } }])).result).to.have.property('code', 'malformed');
  });

  it('are asked for at the registry itself, and anonymously where a login is refused', async () => {
    const [server, mirror] = await Promise.all([startServer(), startServer()]);
    const insecure = [server.host, mirror.host];
    const mirrors = { [server.host]: { endpoints: [mirror.host], fallback: true, credentials: 'mirror' } } as const;
    const { endpointsOf } = createRoutes({ mirrors, insecure, hosts: () => undefined });
    const pullSecrets = async () => [pullSecret('s', { [server.host]: 'me:x' })];
    const harness = startResolver(insecure, { endpointsOf, pullSecrets });
    const users: boolean[] = [];
    server.on('*', (request, response) => {
      const { authorization } = request.headers;
      users.push(authorization !== undefined);
      if (authorization !== undefined) return reply(403)(request, response);
      const challenge = { 'www-authenticate': 'Basic realm="r"' };
      if (users.length === 1) return reply(401, challenge)(request, response);
      return reply(200, {}, JSON.stringify({ tags: ['1'] }))(request, response);
    });
    const access = { ...ANYONE, pullSecrets: ['s'] };
    expect(await harness.resolver.tags(`${server.host}/shop/web:1`, access, never)).to.deep.equal(['1']);
    expect(users).to.deep.equal([false, true, false]);
    expect(mirror.asked).to.deep.equal([]);
  });

  it('are not asked for where an endpoint may be asked for digests only', async () => {
    const server = await startServer();
    server.on('*', reply(200, {}, JSON.stringify({ tags: ['1'] })));
    const { endpointsOf } = createRoutes({ mirrors: {}, insecure: [server.host], hosts: () => undefined });
    const tags = (resolvesTags: boolean) =>
      startResolver([server.host], {
        endpointsOf: (reference) => endpointsOf(reference).map((endpoint) => ({ ...endpoint, resolvesTags })),
      }).resolver.tags(`${server.host}/shop/web:1`, ANYONE, never);
    expect([await tags(true), await tags(false)]).to.deep.equal([['1'], []]);
    expect(server.asked).to.have.length(1);
  });
});
