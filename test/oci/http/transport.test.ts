import { expect } from 'chai';
import type { RequestRecord } from '../../../src/oci/errors.ts';
import { createGuard, type Guard } from '../../../src/oci/http/address-guard.ts';
import {
  chain,
  elsewhere,
  followRedirects,
  measure,
  type Named,
  parseRetryAfter,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
  statusError,
} from '../../../src/oci/http/transport.ts';
import { insecureTrust } from '../../../src/oci/http/trust.ts';
import { failureOf, reply, type ScriptedServer, startServer, stopAfterEach } from '../server.ts';
import { requestTo, sendThrough } from './requests.ts';

describe('a request to a registry', () => {
  let server: ScriptedServer;
  let guard: Guard;
  let records: RequestRecord[];
  beforeEach(async () => {
    server = await startServer();
    guard = createGuard({ connectTimeoutMs: 20_000, now: Date.now });
    records = [];
  });
  afterEach(() => guard.destroy());
  stopAfterEach();

  function ask(path: string, more: Partial<RegistryRequest> = {}): Promise<RegistryResponse> {
    const send = sendThrough(
      guard,
      measure((record) => records.push(record), Date.now),
    );
    return send(requestTo(`https://${server.host}${path}`, { policy: 'configured', trust: insecureTrust, ...more }));
  }
  it('falls back to http for an insecure host, sends its user agent, and asks for no compression', async () => {
    server.on('/', reply(200, { 'x-a': 'b' }, 'hello'));
    const response = await ask('/', { headers: { accept: 'a/b' } });
    expect(Buffer.from(response.body).toString()).to.equal('hello');
    expect(response.headers['x-a']).to.equal('b');
    expect(server.headers[0]).to.include({ 'user-agent': 'ours/1', 'accept-encoding': 'identity', accept: 'a/b' });
    await ask('/');
    expect(server.asked).to.deep.equal(['GET /', 'GET /']);
    expect(records.map(({ code, method, registry }) => [code, method, registry])).to.deep.equal(
      Array(2).fill(['200', 'GET', 'the-registry']),
    );
  });

  for (const encoding of [' ', 'Identity']) {
    it(`ignores a Content-Encoding of "${encoding}"`, async () => {
      server.on('/', reply(200, { 'content-encoding': encoding }, 'plain'));
      expect(Buffer.from((await ask('/')).body).toString()).to.equal('plain');
    });
  }

  it("ends with the caller's signal", async () => {
    server.on('/silent', () => undefined);
    const controller = new AbortController();
    const asking = ask('/silent', { signal: controller.signal }).catch((error: unknown) => error);
    controller.abort(new Error('enough'));
    expect(String(await asking)).to.equal('Error: enough');
  });

  describe('that is redirected', () => {
    it('keeps its credentials on the same origin', async () => {
      server.on('/', reply(307, { location: '/there' }));
      server.on('/there', reply(200, {}, 'x'));
      const response = await ask('/', { headers: { authorization: 'Basic x', cookie: 'y' } });
      expect(response.url.pathname).to.equal('/there');
      expect(server.headers[1]).to.include({ authorization: 'Basic x', cookie: 'y' });
    });

    for (const [from, to] of [
      ['https://r.example.com/', 'https://cdn.example.com/x'],
      ['http://r.example.com/', 'https://r.example.com/x'],
    ] as const) {
      it(`from ${from} to ${to} loses its credentials and privileges`, async () => {
        const seen: RegistryRequest[] = [];
        const redirecting = chain([followRedirects(() => undefined)], async (request) => {
          seen.push(request);
          const answer = seen.length === 1 ? { status: 302, headers: { location: to } } : { status: 200, headers: {} };
          return { ...answer, body: new Uint8Array(), url: request.url };
        });
        await redirecting(
          requestTo(from, {
            headers: { Authorization: 'Basic x', cookie: 'y', accept: 'z' },
            policy: 'configured',
            trust: { ...insecureTrust, authorities: ['CA'], clients: [{ certificate: 'C', key: 'K' }] },
            endpointHeaders: { 'x-key': 'k' },
            credential: { username: 'u', password: 'p', fingerprint: 'f', shared: false },
          }),
        );
        expect(seen[1]?.headers).to.deep.equal({ accept: 'z' });
        expect(seen[1]).to.include({ policy: 'registry' }).and.not.have.any.keys('credential', 'endpointHeaders');
        expect(seen[1]?.trust)
          .to.include({ verify: true, plain: false })
          .and.deep.include({ authorities: ['CA'], clients: [] });
      });
    }

    const towards: [to: string, policy: RegistryRequest['policy'], isNamed: boolean, expected: string][] = [
      ['a named host, from a named one', 'configured', true, 'configured insecure'],
      ['a named host, from one that is not named', 'registry', true, 'registry insecure'],
      ['a named host, from a public one', 'public', true, 'public insecure'],
      ['a host that is not named, from a named one', 'configured', false, 'registry verified'],
    ];
    for (const [to, policy, isNamed, expected] of towards) {
      it(`to ${to} is sent as ${expected}`, () => {
        const named: Named = () => (isNamed ? { policy: 'configured', trust: insecureTrust } : undefined);
        const request = requestTo('https://r.example.com/', { policy });
        const sent = elsewhere(request, new URL('https://store.example.com/'), named);
        expect(`${sent.policy} ${sent.trust?.id ?? 'verified'}`).to.equal(expected);
      });
    }

    /** Follows redirects without a connection: each answer leads there again. */
    function redirecting(location: string | undefined) {
      const asked: string[] = [];
      const answering: SendRequest = async ({ url }) => {
        asked.push(url.href);
        return { status: 302, headers: location === undefined ? {} : { location }, body: new Uint8Array(), url };
      };
      const following = chain([followRedirects(() => undefined)], answering);
      return { asked, error: failureOf(following(requestTo('https://r.example.com/v2/'))) };
    }
    const refused: Readonly<Record<string, readonly (string | undefined)[]>> = {
      malformed: [undefined, 'http://', 'http://a.b:99999/', 'http://a%00b/'],
      'forbidden-address': [
        ...['file:///etc/passwd', 'unix:/var/run/docker.sock', 'data:application/json,{}', 'about:blank'],
        ...['https://user@a.b/', 'https://:pass@a.b/', 'http://r.example.com/'],
      ],
    };
    for (const [code, locations] of Object.entries(refused)) {
      for (const location of locations) {
        it(`to ${JSON.stringify(location) ?? 'nowhere'} is ${code}`, async () => {
          const { asked, error } = redirecting(location);
          expect(await error).to.include({ code, temporary: false });
          expect(asked).to.have.length(1);
        });
      }
    }

    for (const location of ['', '/', '//r.example.com/', 'https://next.example.com/']) {
      it(`to ${JSON.stringify(location)} again and again is malformed after five`, async () => {
        const { asked, error } = redirecting(location);
        expect(await error).to.include({ code: 'malformed', temporary: false });
        expect(asked).to.have.length(6);
      });
    }
  });
});

describe('a status', () => {
  const rows: [status: number, code: string, temporary: boolean][] = [
    [400, 'denied', false],
    [401, 'denied', false],
    [403, 'denied', false],
    [404, 'not-found', false],
    [406, 'unsupported', false],
    [408, 'timeout', true],
    [429, 'rate-limited', true],
    [500, 'unavailable', true],
    [503, 'unavailable', true],
    [302, 'unsupported', false],
  ];
  for (const [status, code, temporary] of rows) {
    it(`${status} is ${code}`, () => {
      const response = { status, headers: { 'retry-after': '7' }, body: new Uint8Array(), url: new URL('https://a.b') };
      expect(statusError(response, 'a.b', 'the manifest', 0)).to.include({
        code,
        temporary,
        retryAfterMs: temporary ? 7000 : undefined,
        endpoint: 'a.b',
      });
    });
  }
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const rows: [value: string, expected: number][] = [
    ['1', 1000],
    [' 30 ', 30_000],
    ['86400', 600_000],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5000],
    ['Thu, 01 Jan 2099 00:00:05 GMT', 600_000],
  ];
  const useless = ['Wed, 31 Dec 2025 23:59:59 GMT', '0', '1e3', 'soon', '99999999999999999999', undefined];
  for (const [value, expected] of [...rows, ...useless.map((value) => [value, undefined] as const)]) {
    it(`${value} is ${expected}`, () => expect(parseRetryAfter(value, now)).to.equal(expected));
  }
});
