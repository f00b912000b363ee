import { expect } from 'chai';
import { authenticate } from '../../src/oci/authentication.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Request, Response, Send } from '../../src/oci/transport.ts';

const CREDENTIAL = { username: 'me', password: 'hunter2', fingerprint: 'f' };
const BASIC = `Basic ${Buffer.from('me:hunter2').toString('base64')}`;
const BEARER = 'Bearer realm="https://auth.example.com/token?a=b",service="reg istry",scope="repository:evil:push"';

type Script = (request: Request) => Partial<Response> & { json?: unknown };

/** Both the registry and its token service, in one function; `asked` are the requests as they came. */
function setup(script: Script, options: { isPublic?: boolean; configured?: string[] } = {}) {
  const asked: Request[] = [];
  let time = 0;
  const send: Send = async (request) => {
    asked.push(request);
    const { json, ...response } = script(request);
    const body = json === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(json));
    return { status: 200, headers: {}, url: request.url, body, ...response };
  };
  const link = authenticate({
    send,
    now: () => time,
    isPublic: () => options.isPublic ?? true,
    isConfigured: (host) => (options.configured ?? []).includes(host),
  });
  const ask = (more: Partial<Request> = {}): Promise<Response> =>
    link(
      {
        method: 'GET',
        url: new URL('https://r.example.com/v2/team/app/manifests/v1'),
        headers: {},
        registry: 'r.example.com',
        policy: 'registry',
        maxBytes: 100,
        signal: new AbortController().signal,
        ...more,
      },
      send,
    );
  return {
    asked,
    ask,
    advance: (milliseconds: number) => {
      time += milliseconds;
    },
    paths: () => asked.map(({ url, headers }) => `${url.host} ${headers.authorization ?? '-'}`),
  };
}

const registry =
  (challenge: string, token: ReturnType<Script>): Script =>
  ({ url, headers }) =>
    url.host === 'auth.example.com'
      ? token
      : headers.authorization === undefined
        ? { status: 401, headers: { 'www-authenticate': challenge } }
        : {};

describe('a challenge', () => {
  it('for Bearer is answered with a token for our own scope, which is used until it expires', async () => {
    const { ask, asked, paths, advance } = setup(registry(BEARER, { json: { token: 't', expires_in: 100 } }));
    expect(await ask()).to.include({ status: 200 });
    expect(asked[1]?.url.href).to.equal(
      'https://auth.example.com/token?a=b&service=reg+istry&scope=repository%3Ateam%2Fapp%3Apull',
    );
    expect(paths()).to.deep.equal(['r.example.com -', 'auth.example.com -', 'r.example.com Bearer t']);
    await ask();
    expect(paths().slice(3)).to.deep.equal(['r.example.com Bearer t']);
    advance(100_000);
    await ask();
    expect(paths().slice(4)).to.have.length(3);
  });

  it('for Bearer takes the credential to the realm only, with access_token as good as token', async () => {
    const { ask, paths } = setup(registry(BEARER, { json: { access_token: 't' } }));
    await ask({ credential: CREDENTIAL });
    expect(paths()).to.deep.equal(['r.example.com -', `auth.example.com ${BASIC}`, 'r.example.com Bearer t']);
  });

  it('keeps tokens of different credentials and repositories apart', async () => {
    const { ask, paths } = setup(registry(BEARER, { json: { token: 't' } }));
    await ask({ credential: CREDENTIAL });
    await ask();
    await ask({ url: new URL('https://r.example.com/v2/other/blobs/x') });
    expect(paths()).to.have.length(9);
  });

  it('for Basic is answered with the credential, and without one not at all', async () => {
    const { ask, paths } = setup(registry('Basic realm="x"', {}));
    expect(await ask()).to.include({ status: 401 });
    expect(await ask({ credential: CREDENTIAL })).to.include({ status: 200 });
    expect(paths()).to.deep.equal(['r.example.com -', 'r.example.com -', `r.example.com ${BASIC}`]);
  });

  it('is answered once: a second 401 stands', async () => {
    const script: Script = ({ url }) =>
      url.host === 'auth.example.com'
        ? { json: { token: 't' } }
        : { status: 401, headers: { 'www-authenticate': `${BEARER},error="invalid_token"` } };
    const { ask, asked } = setup(script);
    expect(await ask()).to.include({ status: 401 });
    expect(asked).to.have.length(3);
  });

  it('to a held token brings one new token', async () => {
    let valid = 't1';
    const script: Script = ({ url, headers }) =>
      url.host === 'auth.example.com'
        ? { json: { token: valid } }
        : headers.authorization === `Bearer ${valid}`
          ? {}
          : { status: 401, headers: { 'www-authenticate': BEARER } };
    const { ask, asked } = setup(script);
    await ask();
    valid = 't2';
    expect(await ask()).to.include({ status: 200 });
    expect(asked).to.have.length(6);
  });

  it('after a redirect is answered anonymously, with the scope of where it leads', async () => {
    const there = new URL('https://cdn.example.com/v2/mirror/app/manifests/v1');
    const script: Script = ({ url, headers }) => {
      if (url.host === 'auth.example.com') return { json: { token: 'anonymous' } };
      if (url.host === 'cdn.example.com' && headers.authorization === 'Bearer anonymous') return {};
      return { status: 401, headers: { 'www-authenticate': BEARER }, url: there };
    };
    const { ask, asked, paths } = setup(script);
    expect(await ask({ credential: CREDENTIAL })).to.include({ status: 200 });
    expect(paths().join()).to.not.include('Basic');
    expect(asked[2]?.url.searchParams.get('scope')).to.equal('repository:mirror/app:pull');
  });

  const policies: [what: string, realm: string, request: Partial<Request>, isPublic: boolean, policy: string][] = [
    ['a public registry', 'https://t.example.com/', {}, true, 'public'],
    ['a private registry', 'https://t.example.com/', {}, false, 'registry'],
    ['an insecure one, to a named host', 'http://named:5000/', { policy: 'configured' }, false, 'configured'],
    ['an insecure one, to another host', 'http://t.example.com/', { policy: 'configured' }, false, 'registry'],
    ['a stranger, to a named host', 'https://named:5000/', {}, true, 'public'],
  ];
  for (const [what, realm, request, isPublic, policy] of policies) {
    it(`of ${what} leads to addresses of policy "${policy}"`, async () => {
      const script: Script = ({ url }) =>
        url.host === 'r.example.com'
          ? { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}"` } }
          : { json: { token: 't' } };
      const { ask, asked } = setup(script, { isPublic, configured: ['named:5000'] });
      await ask(request);
      expect(asked[1]?.policy).to.equal(policy);
    });
  }

  const failures: [what: string, token: ReturnType<Script>, code: string][] = [
    ['redirects', { status: 302, headers: { location: 'https://a.b/' } }, 'denied'],
    ['refuses', { status: 401 }, 'denied'],
    ['is not there', { status: 404 }, 'denied'],
    ['limits', { status: 429 }, 'rate-limited'],
    ['fails', { status: 503 }, 'unavailable'],
    ['sends no token', { json: { token: '' } }, 'malformed'],
    ['sends a list', { json: [] }, 'malformed'],
    ['sends a line break', { json: { token: 'a\r\nx: y' } }, 'malformed'],
    ['sends no JSON', {}, 'malformed'],
  ];
  for (const [what, token, code] of failures) {
    it(`whose token service ${what} is ${code}`, async () => {
      const { ask } = setup(registry(BEARER, token));
      const error: unknown = await ask({ credential: CREDENTIAL }).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ImageError).that.includes({ code });
      expect(String(error)).to.not.include('hunter2');
    });
  }

  it('with a realm on http is refused before the credential moves', async () => {
    const { ask, asked } = setup(registry('Bearer realm="http://auth.example.com/"', { json: { token: 't' } }));
    const error: unknown = await ask({ credential: CREDENTIAL }).catch((reason: unknown) => reason);
    expect(error).to.include({ code: 'forbidden-address' });
    expect(asked).to.have.length(1);
  });
});
