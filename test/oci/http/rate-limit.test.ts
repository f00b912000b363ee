import { expect } from 'chai';
import {
  chain,
  followRedirects,
  measure,
  parseRateLimit,
  type RegistryResponse,
} from '../../../src/oci/http/transport.ts';
import { requestTo } from './requests.ts';

describe("a registry's limit of pulls", () => {
  const rows: [limit: string | undefined, remaining: string | undefined, expected: number[] | undefined][] = [
    ['100;w=21600', '76;w=21600', [100, 76, 21600]],
    ['100;w=21600', '76', [100, 76]],
    ['100', '76; w=60 ;x', [100, 76, 60]],
    ['100', '76;w=1e9', [100, 76]],
    ['100', '0', [100, 0]],
    [' 200 ; w=21600', ' 1 ', [200, 1]],
    ['100;w=21600', undefined, undefined],
  ];
  for (const limit of [undefined, '', 'many', '1e9', '9999999999', '100 100']) rows.push([limit, '76', undefined]);
  for (const [limit, remaining, expected] of rows) {
    it(`of "${limit}" and "${remaining}" is ${expected?.join(' and ') ?? 'not read'}`, () => {
      const headers = {
        ...(limit === undefined ? {} : { 'ratelimit-limit': limit }),
        ...(remaining === undefined ? {} : { 'ratelimit-remaining': remaining }),
      };
      const { limit: most, remaining: left, windowSeconds } = parseRateLimit(headers) ?? {};
      expect([most, left, windowSeconds].filter((each) => each !== undefined)).to.deep.equal(expected ?? []);
    });
  }

  async function ask(method: 'GET' | 'HEAD', path: string, answers: Partial<RegistryResponse>[]): Promise<unknown[]> {
    const reported: unknown[] = [];
    const send = chain([followRedirects(() => undefined), measure(() => undefined, Date.now)], async ({ url }) => ({
      status: 200,
      headers: {},
      body: new Uint8Array(),
      url,
      ...answers.shift(),
    }));
    const onRateLimit = (limit: unknown): void => void reported.push(limit);
    await send(requestTo(new URL(path, 'https://registry-1.docker.io'), { method, onRateLimit }));
    return reported;
  }
  const LEFT = { limit: 100, remaining: 5, windowSeconds: 21600 };
  const manifest = '/v2/library/nginx/manifests/1';
  const limits = (remaining: number): Record<string, string> => ({
    'ratelimit-limit': '100;w=21600',
    'ratelimit-remaining': `${remaining};w=21600`,
  });

  it('is reported with any answer about a manifest', async () => {
    expect(await ask('HEAD', manifest, [{ status: 429, headers: limits(5) }])).to.deep.equal([LEFT]);
  });

  it('is not reported for blobs, nor for answers without it', async () => {
    expect(await ask('GET', '/v2/library/nginx/blobs/sha256:0', [{ headers: limits(5) }])).to.deep.equal([]);
    expect(await ask('GET', manifest, [{}])).to.deep.equal([]);
  });

  it('is that of the registry, not of a host to which it redirects', async () => {
    const redirect = { status: 307, headers: { ...limits(5), location: 'https://cdn.example.com/manifests/1' } };
    expect(await ask('GET', manifest, [redirect, { headers: limits(9) }])).to.deep.equal([LEFT]);
  });
});
