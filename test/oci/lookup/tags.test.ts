import { expect } from 'chai';
import type { Endpoint } from '../../../src/oci/endpoints/endpoint.ts';
import type { RegistryRequest, RegistryResponse } from '../../../src/oci/http/transport.ts';
import { listTags } from '../../../src/oci/lookup/tags.ts';
import { parseReference } from '../../../src/oci/reference.ts';

const ENDPOINT: Endpoint = {
  name: 'registry.example.com',
  host: 'registry.example.com',
  base: 'https://registry.example.com/v2',
  repository: 'shop/web',
  credentialName: 'registry.example.com/shop/web',
  isSource: true,
  query: '',
  policy: 'configured',
  headers: {},
  resolvesTags: true,
};
const LOGIN = { username: 'u', password: 'p', fingerprint: 'f', shared: true };

/** Lists tags from these answers, one for each request; gives them with the paths that were asked. */
async function list(
  answers: readonly { status?: number; body?: unknown; link?: string }[],
  credentials: readonly (typeof LOGIN | undefined)[] = [undefined],
) {
  const asked: RegistryRequest[] = [];
  const send = async (request: RegistryRequest): Promise<RegistryResponse> => {
    const { status = 200, body = {}, link } = answers[asked.length] ?? answers.at(-1) ?? {};
    asked.push(request);
    const headers = link === undefined ? {} : { link };
    return { status, headers, body: Buffer.from(JSON.stringify(body)), url: request.url };
  };
  const reference = parseReference('registry.example.com/shop/web:1');
  const task = { reference, endpoint: ENDPOINT, credentials, isPrivate: false, signal: new AbortController().signal };
  const result = await listTags(task, send, () => 0).catch((error: unknown) => error);
  return { result, paths: asked.map(({ url }) => `${url.host}${url.pathname}${url.search}`), asked };
}

describe('the tags of a repository', () => {
  it('are what the registry lists, without what cannot be a tag', async () => {
    const { result, paths } = await list([{ body: { tags: ['1', 'a b', '../x', 7, 'v2'] } }]);
    expect(result).to.deep.equal(['1', 'v2']);
    expect(paths).to.deep.equal(['registry.example.com/v2/shop/web/tags/list?n=1000']);
  });

  it('follow pages at the same host only', async () => {
    const { result, paths } = await list([
      { body: { tags: ['1'] }, link: '<https://evil.example/v2/x/tags/list?last=1&n=1>; rel="next"' },
      { body: { tags: ['2'] } },
    ]);
    expect(result).to.deep.equal(['1', '2']);
    expect(paths[1]).to.equal('registry.example.com/v2/shop/web/tags/list?n=1000&last=1');
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

  it('are asked for with the next login where one is refused', async () => {
    const { result, asked } = await list([{ status: 403 }, { body: { tags: ['1'] } }], [LOGIN, undefined]);
    expect(result).to.deep.equal(['1']);
    expect(asked.map(({ credential }) => credential?.username)).to.deep.equal(['u', undefined]);
  });
});
