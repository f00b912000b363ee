import { expect } from 'chai';
import { ImageError } from '../../../src/oci/errors.ts';
import { authenticate } from '../../../src/oci/http/authentication.ts';
import { followOnHost } from '../../../src/oci/http/token.ts';
import {
  type Credential,
  chain,
  type Named,
  type RegistryRequest,
  type RegistryResponse,
  type SendRequest,
} from '../../../src/oci/http/transport.ts';
import type { Trust } from '../../../src/oci/http/trust.ts';
import { failureOf } from '../server.ts';
import { requestTo } from './requests.ts';

const CREDENTIAL: Credential = { username: 'me', password: 'hunter2', fingerprint: 'f', shared: false };
const IDENTITY: Credential = { ...CREDENTIAL, password: '', identityToken: 'refresh+me', fingerprint: 'i' };
const IDENTITY_BASIC = `Basic ${Buffer.from('me:refresh+me').toString('base64')}`;
const BASIC = `Basic ${Buffer.from('me:hunter2').toString('base64')}`;
const BEARER = 'Bearer realm="https://auth.example.com/token?a=b",service="reg istry",scope="repository:evil:push"';

type Script = (request: RegistryRequest) => Partial<RegistryResponse> & { json?: unknown; after?: Promise<void> };

/** The registry and its token service in one function; `asked` are the requests in order. */
function setup(script: Script, options: { isPublic?: boolean; named?: Record<string, Trust | undefined> } = {}) {
  const asked: RegistryRequest[] = [];
  let time = 0;
  const send: SendRequest = async (request) => {
    asked.push(request);
    const { json, after, ...response } = script(request);
    await after;
    request.signal.throwIfAborted();
    const body = json === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(json));
    return { status: 200, headers: {}, url: request.url, body, ...response };
  };
  const named: Named = ({ host }) => {
    const trust = options.named?.[host];
    if (!Object.hasOwn(options.named ?? {}, host)) return undefined;
    return { policy: 'configured', ...(trust === undefined ? {} : { trust }) };
  };
  const towards = { named, isPublic: () => options.isPublic ?? true };
  const link = authenticate({ ...towards, send: chain([followOnHost(towards)], send), now: () => time });
  const ask = (more: Partial<RegistryRequest> = {}): Promise<RegistryResponse> =>
    link(
      requestTo('https://r.example.com/v2/team/app/manifests/v1', {
        scope: 'repository:team/app:pull',
        registry: 'r.example.com',
        maxBytes: 100,
        ...more,
      }),
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

const asksFor = (challenge: string) => ({ status: 401, headers: { 'www-authenticate': challenge } });

/** A registry that accepts every answer to its challenge, or these. */
const registry =
  (
    challenge: string,
    token: ReturnType<Script> | Script,
    accepts: (header?: string) => boolean = (header) => header !== undefined,
  ): Script =>
  (request) => {
    if (request.url.host === 'auth.example.com') return typeof token === 'function' ? token(request) : token;
    return accepts(request.headers.authorization) ? {} : asksFor(challenge);
  };

const at = (repository: string, credential?: Credential): Partial<RegistryRequest> => ({
  url: new URL(`https://r.example.com/v2/${repository}/manifests/v1`),
  scope: `repository:${repository}:pull`,
  ...(credential === undefined ? {} : { credential }),
});

describe('a challenge', () => {
  it("for Bearer is answered with a token for the request's own scope, which is used until it expires", async () => {
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
    expect(paths().slice(4), 'its scope is known').to.deep.equal(['auth.example.com -', 'r.example.com Bearer t']);
  });

  it('for Bearer sends the credential to the realm only; access_token counts as token', async () => {
    for (const json of [{ access_token: 't' }, { token: '', access_token: 't' }]) {
      const { ask, paths } = setup(registry(BEARER, { json }));
      await ask({ credential: CREDENTIAL });
      expect(paths()).to.deep.equal(['r.example.com -', `auth.example.com ${BASIC}`, 'r.example.com Bearer t']);
    }
  });

  it('leads to separate tokens for different credentials and repositories', async () => {
    const { ask, paths } = setup(registry(BEARER, { json: { token: 't' } }));
    await ask({ credential: CREDENTIAL });
    await ask();
    await ask({ scope: 'repository:other:pull' });
    expect(paths()).to.have.length(9);
  });

  it('for Basic is answered with the credential, and without one not at all', async () => {
    const { ask, paths } = setup(registry('Basic realm="x"', {}));
    expect(await ask()).to.include({ status: 401 });
    expect(await ask({ credential: CREDENTIAL })).to.include({ status: 200 });
    expect(paths()).to.deep.equal(['r.example.com -', 'r.example.com -', `r.example.com ${BASIC}`]);
  });

  const accepted: readonly [what: string, challenge: string | undefined, status: number, isAccepted: boolean][] = [
    ['that anybody may read', undefined, 200, false],
    ['behind Basic', 'Basic realm="x"', 200, true],
    ['behind Basic that is missing', 'Basic realm="x"', 404, false],
    ['behind a token service', BEARER, 200, true],
    ['behind a token service, whose manifest is the same', BEARER, 304, true],
    ['behind a token service, that is missing', BEARER, 404, true],
    ['behind a token service, while the registry fails', BEARER, 502, false],
    ['behind a token service, whose token is refused', BEARER, 401, false],
  ];
  for (const [what, challenge, status, isAccepted] of accepted) {
    it(`for an image ${what} (${status}) ${isAccepted ? 'shows' : 'does not show'} that the login works`, async () => {
      let count = 0;
      const { ask } = setup((request) => {
        if (request.url.host === 'auth.example.com') return { json: { token: 't' } };
        const isAnswered = challenge === undefined || request.headers.authorization !== undefined;
        return { ...asksFor(challenge ?? ''), ...(isAnswered ? { status } : {}) };
      });
      const onAccepted = (): void => {
        count += 1;
      };
      await ask({ credential: { ...CREDENTIAL, onAccepted } });
      expect(count > 0).to.equal(isAccepted);
    });
  }

  it('after a redirect is answered anonymously', async () => {
    const there = new URL('https://cdn.example.com/v2/mirror/app/manifests/v1');
    const script: Script = ({ url, headers }) => {
      if (url.host === 'auth.example.com') return { json: { token: 'anonymous' } };
      if (url.host === 'cdn.example.com' && headers.authorization === 'Bearer anonymous') return {};
      return { ...asksFor(BEARER), url: there };
    };
    const { ask, asked, paths } = setup(script);
    expect(await ask({ credential: CREDENTIAL })).to.include({ status: 200 });
    expect(paths().join()).to.not.include('Basic');
    expect(asked[1]?.url.searchParams.get('scope')).to.equal('repository:team/app:pull');
  });

  const trusts = (id: string, plain = false): Trust => ({ id, verify: false, plain, authorities: ['x'], clients: [] });
  const own = trusts('own');
  const owned: Partial<RegistryRequest> = { policy: 'configured', trust: own };
  const endpoint = { ...owned, endpointHeaders: { 'x-endpoint': 'secret' } };
  const insecure = { policy: 'configured', trust: trusts('own', true) } as const;
  const open = { policy: 'configured', url: new URL('http://r.example.com/v2/x') } as const;
  /** As it is sent: by which policy and trust, and with which headers. */
  const towards: [what: string, realm: string, request: Partial<RegistryRequest>, isPublic: boolean, sent: string][] = [
    ['a public registry', 'https://t.example.com/', {}, true, 'public'],
    ['a private registry', 'https://t.example.com/', {}, false, 'registry'],
    ['a registry, to itself', 'https://r.example.com/token', {}, true, 'registry'],
    ['a named one, to itself', 'https://r.example.com/', { policy: 'configured' }, true, 'configured'],
    ['an endpoint, to itself', 'https://r.example.com/token', endpoint, true, 'configured own x-endpoint'],
    ['an endpoint, to another port', 'https://r.example.com:8443/token', endpoint, true, 'public own for strangers'],
    ['a named one, to another named one', 'https://named:5000/', owned, false, 'configured other'],
    ['a named one, to one without a trust', 'https://bare:5000/', owned, false, 'configured own for strangers'],
    ['an insecure one, to another over http', 'http://t.example.com/', insecure, false, 'registry own for strangers'],
    ['one that is named with http, to a named one over http', 'http://named:5000/', open, false, 'configured other'],
    ['an unnamed registry, to a named one', 'https://named:5000/', {}, true, 'public'],
  ];
  for (const [what, realm, request, isPublic, sent] of towards) {
    it(`of ${what} leads to a token request that is ${sent}`, async () => {
      const script: Script = ({ maxBytes }) =>
        maxBytes === 100 ? asksFor(`Bearer realm="${realm}"`) : { json: { token: 't' } };
      const named = { 'named:5000': trusts('other'), 'bare:5000': undefined };
      const { ask, asked } = setup(script, { isPublic, named });
      await ask({ ...request, credential: CREDENTIAL });
      const [, { policy, trust, endpointHeaders = {} } = expect.fail('no token request')] = asked;
      expect([policy, trust?.id, ...Object.keys(endpointHeaders)].filter(Boolean).join(' ')).to.equal(sent);
      expect(asked[1]).to.not.have.property('credential');
    });
  }

  it('with a realm that is refused gets no login: http, of a registry that is named with https', async () => {
    const { ask, asked } = setup(registry('Bearer realm="http://auth.example.com/"', { json: { token: 't' } }));
    expect(await failureOf(ask({ ...owned, credential: CREDENTIAL }))).to.include({ code: 'forbidden-address' });
    expect(asked).to.have.length(1);
  });

  describe('of a token service that redirects', () => {
    const START = 'https://auth.example.com/token';
    const QUERY = '?scope=repository%3Ateam%2Fapp%3Apull';
    /** Answers a token at each URL for which it has no redirect: status and location. */
    function service(hops: Record<string, [status: number, location: string]>, realm = START): Script {
      return ({ url, headers, maxBytes }) => {
        if (maxBytes === 100) return headers.authorization === 'Bearer t' ? {} : asksFor(`Bearer realm="${realm}"`);
        const [status, location] = hops[url.origin + url.pathname] ?? [];
        return status === undefined ? { json: { token: 't' } } : { status, headers: { location: location ?? '' } };
      };
    }
    const tokenRequests = (asked: readonly RegistryRequest[]) =>
      asked
        .filter(({ maxBytes }) => maxBytes !== 100)
        .map(({ method, url, headers, policy }) => `${method} ${url.href} ${policy} ${headers.authorization ?? '-'}`);

    // After 301 to 303, a POST is not sent again: the service is asked by GET.
    for (const status of [301, 302, 303, 307, 308]) {
      const method = status < 307 ? 'GET' : 'POST';
      it(`with ${status} on its own host is followed, with the login`, async () => {
        const { ask, asked } = setup(service({ [START]: [status, `/v2/token${QUERY}`] }));
        expect(await ask({ credential: CREDENTIAL })).to.include({ status: 200 });
        expect(tokenRequests(asked)).to.deep.equal([
          `GET ${START}${QUERY} public ${BASIC}`,
          `GET https://auth.example.com/v2/token${QUERY} public ${BASIC}`,
        ]);
      });

      it(`with ${status} gets an identity token by ${method}`, async () => {
        const { ask, asked } = setup(service({ [START]: [status, '/t'] }));
        expect(await ask({ credential: IDENTITY })).to.include({ status: 200 });
        const last = asked.at(-2);
        expect(last).to.include({ method }).and.have.nested.property('url.pathname', '/t');
        if (method === 'POST') expect(last?.body).to.equal(asked[1]?.body).and.include('refresh%2Bme');
        else expect(last).to.not.have.property('body');
      });
    }

    it('to another port is followed, with the address policy of a token service', async () => {
      const own = 'https://r.example.com/token';
      const { ask, asked } = setup(service({ [own]: [307, 'https://r.example.com:8443/t'] }, own));
      const request = { credential: CREDENTIAL, endpointHeaders: { 'x-endpoint': 'secret' } };
      expect(await ask(request)).to.include({ status: 200 });
      expect(tokenRequests(asked)[1]).to.equal(`GET https://r.example.com:8443/t public ${BASIC}`);
      expect(asked[2]).to.not.have.any.keys('endpointHeaders', 'credential');
    });

    it('from http to https is followed where http is allowed', async () => {
      const open = 'http://r.example.com/token';
      const { ask, asked } = setup(service({ [open]: [301, 'https://r.example.com/token'] }, open));
      const request = { url: new URL('http://r.example.com/v2/team/app/manifests/v1'), credential: CREDENTIAL };
      expect(await ask({ ...request, policy: 'configured' })).to.include({ status: 200 });
      expect(tokenRequests(asked)[1]).to.equal(`GET https://r.example.com/token configured ${BASIC}`);
    });

    const refused: [what: string, location: string][] = [
      ['to another host', 'https://other.example.com/token'],
      ['to a host within its own', 'https://a.auth.example.com/token'],
      ['to the registry', 'https://r.example.com/token'],
      ['to http', 'http://auth.example.com/token'],
      ['to http on a port that is named', 'http://auth.example.com:5000/token'],
      ['with user information', 'https://me:x@auth.example.com/t'],
      ['to itself, again and again', START],
      ['to no URL', 'https://'],
      ['to another scheme', 'ftp://auth.example.com/t'],
    ];
    for (const [what, location] of refused) {
      it(`${what} is refused, and the login goes nowhere else`, async () => {
        const named = { 'auth.example.com:5000': trusts('named', true) };
        for (const credential of [CREDENTIAL, IDENTITY]) {
          const { ask, asked } = setup(service({ [START]: [307, location] }), { named });
          expect(await failureOf(ask({ credential }))).to.include({
            code: 'denied',
            message:
              'the token service of r.example.com redirects; only 3 redirects with https on its own host are followed',
          });
          expect(new Set(asked.slice(1).map(({ url }) => url.origin))).to.deep.equal(
            new Set(['https://auth.example.com']),
          );
          expect(asked).to.have.length(location === START ? 5 : 2);
        }
      });
    }
  });

  const failures: [what: string, token: ReturnType<Script>, code: string][] = [
    ['is not there', { status: 404 }, 'denied'],
    ['limits', { status: 429 }, 'rate-limited'],
    ['has a status of its own', { status: 999 }, 'unavailable'],
    ['does not answer what was asked', { status: 418 }, 'unsupported'],
    ['sends a list of tokens', { json: [{ token: 't' }] }, 'malformed'],
    ['sends broken JSON', { body: Buffer.from('{"token":"hunter2') }, 'malformed'],
    ...['', 'a\n', 'a b', 't\u00f6k', null, ['t'], 't'.repeat(70_000)].map((token): (typeof failures)[number] => [
      `sends the token ${JSON.stringify(token)?.slice(0, 20)}`,
      { json: { token } },
      'malformed',
    ]),
  ];
  for (const [what, token, code] of failures) {
    it(`whose token service ${what} is ${code}`, async () => {
      const { ask } = setup(registry(BEARER, token));
      const error = await failureOf(ask({ credential: CREDENTIAL }));
      expect(error).to.include({ code });
      expect(String(error)).to.not.include('hunter2');
    });
  }

  const lifetimes: [what: string, answer: object, seconds: number][] = [
    ['no expiry', { token: 't' }, 54],
    ['an expiry', { token: 't', expires_in: 300 }, 270],
    ['an empty expiry', { token: 't', expires_in: 0 }, 54],
    ['an expiry in the past', { token: 't', expires_in: -5 }, 54],
    ['one as text', { token: 't', expires_in: '300' }, 54],
    ['an expiry that never comes', { token: 't', expires_in: 1e300 }, 3240],
    ['an expiry of half a second', { token: 't', expires_in: 0.5 }, 0.45],
    ['a time of issue long ago', { token: 't', expires_in: 100, issued_at: '1970-01-01T00:00:00Z' }, 90],
  ];
  for (const [what, json, seconds] of lifetimes) {
    it(`with ${what} is good for ${seconds} s`, async () => {
      const { ask, asked, advance } = setup(registry(BEARER, { json }));
      await ask();
      advance(seconds * 1000 - 1);
      await ask();
      expect(asked).to.have.length(4);
      advance(1);
      await ask();
      expect(asked).to.have.length(6);
    });
  }

  it('of GHCR, which gives anybody a token, is refused if the token is refused', async () => {
    const { ask, asked } = setup(registry(BEARER, { json: { token: 'worth-nothing' } }, () => false));
    expect(await ask()).to.include({ status: 401 });
    expect(await ask()).to.include({ status: 401 });
    expect(asked, 'a token that was refused is not held').to.have.length(6);
  });
});

describe('a project that challenges', () => {
  const withToken = registry(BEARER, { json: { token: 't' } });

  for (const credential of [undefined, CREDENTIAL]) {
    it(`for two repositories is not asked for its challenge again, ${credential ? 'with' : 'without'} a credential`, async () => {
      const { ask, asked, paths } = setup(withToken);
      for (const name of ['one', 'two', 'three', 'four']) {
        expect(await ask(at(`team/${name}`, credential))).to.include({ status: 200 });
      }
      expect(asked).to.have.length(3 + 3 + 2 + 2);
      const login = credential ? BASIC : '-';
      expect(paths().slice(-2)).to.deep.equal([`auth.example.com ${login}`, 'r.example.com Bearer t']);
      expect(asked.at(-2)?.url.searchParams.get('scope')).to.equal('repository:team/four:pull');
    });
  }

  it('with Basic gets the credential at once', async () => {
    const { ask, asked } = setup(registry('Basic', {}));
    for (const name of ['one', 'two', 'three']) await ask(at(`team/${name}`, CREDENTIAL));
    expect(asked).to.have.length(2 + 2 + 1);
  });

  it('decides nothing for another project, another credential, or after an hour', async () => {
    const { ask, paths, advance } = setup(withToken);
    for (const name of ['one', 'two']) await ask(at(`team/${name}`, CREDENTIAL));
    const firstOf = async (request: Partial<RegistryRequest>): Promise<string | undefined> => {
      const before = paths().length;
      await ask(request);
      return paths()[before];
    };
    expect(await firstOf(at('other/one', CREDENTIAL))).to.equal('r.example.com -');
    expect(await firstOf(at('team/three', { ...CREDENTIAL, fingerprint: 'g' }))).to.equal('r.example.com -');
    advance(3_600_000);
    expect(await firstOf(at('team/four', CREDENTIAL))).to.equal('r.example.com -');
  });

  it('with a login that was refused is asked first the next time', async () => {
    let status = 200;
    const { ask, paths, advance } = setup(registry(BEARER, () => ({ status, json: { token: 't' } })));
    await ask(at('team/one', CREDENTIAL));
    advance(60_000);
    status = 401;
    for (const _ of [1, 2]) {
      expect(await failureOf(ask(at('team/one', CREDENTIAL)))).to.include({ code: 'denied' });
    }
    const login = `auth.example.com ${BASIC}`;
    expect(paths().slice(3)).to.deep.equal([login, 'r.example.com -', login]);
  });

  it('with Basic only after a token was revoked (Harbor) gets tokens again after an hour', async () => {
    let valid = 't1';
    const { ask, paths, advance } = setup(({ url, headers: { authorization } }) => {
      if (url.host === 'auth.example.com') return { json: { token: valid, expires_in: 3600 } };
      if (authorization === BASIC || authorization === `Bearer ${valid}`) return {};
      return asksFor(authorization === undefined ? BEARER : 'Basic realm="harbor"');
    });
    const last = async () => {
      await ask(at('team/one', CREDENTIAL));
      return paths().at(-1);
    };
    expect(await last()).to.equal('r.example.com Bearer t1');
    valid = 't2';
    expect([await last(), await last()]).to.deep.equal(Array(2).fill(`r.example.com ${BASIC}`));
    advance(3_600_000);
    expect(await last()).to.equal('r.example.com Bearer t2');
  });

  it('is asked first again once its token service fails, and each time if it names other scopes', async () => {
    let isDown = false;
    const { ask, paths } = setup((request) => {
      if (request.url.host === 'auth.example.com' && isDown) return { status: 503 };
      return request.url.pathname.includes('/public') ? {} : withToken(request);
    });
    for (const name of ['one', 'two']) await ask(at(`team/${name}`));
    isDown = true;
    expect(await ask(at('team/public'))).to.include({ status: 200 });
    expect(paths().slice(-2)).to.deep.equal(['auth.example.com -', 'r.example.com -']);
    const mapped = setup(registry(`${BEARER.slice(0, -21)}repository:hub/app:pull"`, { json: { token: 't' } }));
    for (const name of ['one', 'two', 'three']) await mapped.ask(at(`team/${name}`));
    expect(mapped.asked).to.have.length(9);
  });
});

describe('a scope that a challenge names', () => {
  const OWN = 'repository:team/app:pull';
  const many = ['c', 'd', 'e', 'f', 'g', 'h'].map((name) => `repository:${name}:pull`);
  const rows: [what: string, scope: string, more: string[]][] = [
    ['of another name is requested, to read', 'repository:hub/app:pull,push', ['repository:hub/app:pull']],
    ['of more than reading is ignored', 'repository:team/app:pull,push repository:evil:push repository:evil:*', []],
    ['of something else is ignored', 'registry:catalog:* aws *', []],
    ['of no repository is ignored', 'repository::pull repository:../x:pull repository:A:pull repository:a b:pull', []],
    ['that is very long is ignored', `repository:${'a'.repeat(400)}:pull`, []],
    ['that is an example is ignored', 'repository:user/image:pull', []],
    ['that smuggles is ignored', 'repository:a&account=root:pull repository:a\u00e9:pull', []],
    ['is one of four at most', many.join(' '), many.slice(0, 4)],
  ];
  for (const [what, scope, more] of rows) {
    it(what, async () => {
      const challenge = `Bearer realm="https://auth.example.com/token",scope="${scope}"`;
      const { ask, asked } = setup(registry(challenge, { json: { token: 't' } }));
      await ask();
      expect(asked[1]?.url.searchParams.getAll('scope')).to.deep.equal([OWN, ...more]);
    });
  }

  it('is another one each time: it is asked for a few times only', async () => {
    let turn = 0;
    const { ask, asked } = setup(({ url }) => {
      turn += 1;
      const challenge = `Bearer realm="https://auth.example.com/token",scope="repository:x${turn}:pull"`;
      return url.host === 'auth.example.com' ? { json: { token: 't' } } : asksFor(challenge);
    });
    expect(await ask()).to.include({ status: 401 });
    expect(asked.length).to.be.at.most(5);
  });
});

describe('an identity token', () => {
  const ACR = 'Bearer realm="https://auth.example.com/oauth2/token",service="r.example.com"';

  it('is posted to the realm, and never sent to the registry', async () => {
    const { ask, asked, paths } = setup(registry(ACR, { json: { access_token: 't' } }));
    expect(await ask({ credential: IDENTITY })).to.include({ status: 200 });
    expect(asked[1]).to.deep.include({
      method: 'POST',
      url: new URL('https://auth.example.com/oauth2/token'),
      headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
      body:
        'grant_type=refresh_token&refresh_token=refresh%2Bme&service=r.example.com' +
        '&scope=repository%3Ateam%2Fapp%3Apull&client_id=archaware-controller',
    });
    expect(paths()).to.deep.equal(['r.example.com -', 'auth.example.com -', 'r.example.com Bearer t']);
  });

  for (const status of [400, 401, 404, 405]) {
    it(`is sent by GET if a POST is answered with ${status}, and that is remembered`, async () => {
      const { ask, asked } = setup(
        registry(ACR, ({ method }) => (method === 'POST' ? { status } : { json: { token: 't' } })),
      );
      expect(await ask({ credential: IDENTITY })).to.include({ status: 200 });
      expect(asked.map(({ method }) => method)).to.deep.equal(['GET', 'POST', 'GET', 'GET']);
      expect(asked[2]?.headers).to.deep.equal({ accept: 'application/json', authorization: IDENTITY_BASIC });
      expect(asked[2]).to.not.have.property('body');
      await ask({ credential: IDENTITY, scope: 'repository:other:pull' });
      expect(asked.slice(4).map(({ method }) => method)).to.deep.equal(['GET', 'GET', 'GET']);
    });
  }

  it('that is wrong does not mark its service as one that only supports GET', async () => {
    const { ask, asked } = setup(registry(ACR, { status: 401 }));
    for (const scope of ['a', 'b']) {
      const error = await failureOf(ask({ credential: IDENTITY, scope }));
      expect(error).to.include({ code: 'denied' });
      expect(String(error)).to.not.include('refresh');
    }
    expect(asked.map(({ method }) => method)).to.deep.equal(['GET', 'POST', 'GET', 'GET', 'POST', 'GET']);
  });

  it('is not sent by GET because the service is down', async () => {
    const { ask, asked } = setup(registry(ACR, { status: 503 }));
    expect(await failureOf(ask({ credential: IDENTITY }))).to.include({ code: 'unavailable' });
    expect(asked).to.have.length(2);
  });

  it('is not used for Basic, unless there is a password too', async () => {
    const { ask, paths } = setup(registry('Basic realm="x"', {}));
    expect(await ask({ credential: IDENTITY })).to.include({ status: 401 });
    expect(await ask({ credential: { ...IDENTITY, password: 'hunter2' } })).to.include({ status: 200 });
    expect(paths()).to.deep.equal(['r.example.com -', 'r.example.com -', `r.example.com ${BASIC}`]);
  });
});

describe('token requests at once', () => {
  /** A token service that answers when the test says so. */
  function held() {
    let open = (): void => undefined;
    const after = new Promise<void>((resolve) => {
      open = resolve;
    });
    const setting = setup(registry(BEARER, { json: { token: 't' }, after }));
    const tokens = (): RegistryRequest[] => setting.asked.filter(({ url }) => url.host === 'auth.example.com');
    return { ...setting, tokens, open: () => open() };
  }

  it('for one scope and credential are merged', async () => {
    const { ask, tokens, open } = held();
    const all = Promise.all(Array.from({ length: 20 }, () => ask({ credential: CREDENTIAL })));
    open();
    expect((await all).map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
    expect(tokens()).to.have.length(1);
  });

  it('for different scopes, credentials and trusts are separate', async () => {
    const { ask, tokens, open } = held();
    const trust: Trust = { id: 'x', verify: false, plain: false, authorities: [], clients: [] };
    const all = Promise.all([ask(), ask({ scope: 'x' }), ask({ credential: CREDENTIAL }), ask({ trust })]);
    open();
    await all;
    expect(tokens()).to.have.length(4);
  });

  it('go on when one of the waiting requests leaves', async () => {
    const { ask, tokens, open } = held();
    const leaving = new AbortController();
    const first = ask({ signal: leaving.signal }).catch((reason: unknown) => reason);
    const second = ask();
    await new Promise(setImmediate);
    leaving.abort(new Error('gone'));
    expect(await first).to.include({ message: 'gone' });
    expect(tokens()[0]?.signal.aborted).to.equal(false);
    open();
    expect(await second).to.include({ status: 200 });
    expect(tokens()).to.have.length(1);
  });

  it('are not made by a request whose old token was refused after another got a new one', async () => {
    let valid = 't1';
    const late: (() => void)[] = [];
    const script: Script = ({ url, headers, method }) => {
      if (url.host === 'auth.example.com') return { json: { token: valid } };
      if (headers.authorization === `Bearer ${valid}`) return {};
      return { ...asksFor(BEARER), ...(method === 'HEAD' && { after: new Promise((resolve) => late.push(resolve)) }) };
    };
    const { ask, asked } = setup(script);
    await ask();
    valid = 't2';
    const head = ask({ method: 'HEAD' });
    expect(await ask()).to.include({ status: 200 });
    for (const resolve of late) resolve();
    expect(await head).to.include({ status: 200 });
    expect(asked.filter(({ url }) => url.host === 'auth.example.com')).to.have.length(2);
  });

  describe('that only the root of a registry gives', () => {
    const hiding =
      (root: string | undefined): Script =>
      ({ url, headers }) => {
        if (url.pathname === '/v2/') return root === undefined ? { status: 401 } : asksFor(root);
        return { status: headers.authorization === BASIC ? 200 : 404 };
      };
    const root = new URL('https://r.example.com/v2/');
    const rows: [what: string, root: string | undefined, credential: Credential, status: number, isAnonymous?: true][] =
      [
        ['a password is sent where Basic is asked for', 'Basic realm="x"', CREDENTIAL, 200],
        ['an identity token is not, but another credential may be', 'Basic realm="x"', IDENTITY, 404],
        ['nothing is sent where nothing is asked for', undefined, CREDENTIAL, 404, true],
        ['nothing is sent to a scheme that is not known', 'Negotiate', CREDENTIAL, 404, true],
      ];
    for (const [what, challenge, credential, status, isAnonymous] of rows) {
      it(what, async () => {
        const { ask, asked } = setup(hiding(challenge));
        const response = await ask({ credential, root });
        expect([response.status, response.isAnonymous]).to.deep.equal([status, isAnonymous]);
        expect(asked[1]?.headers).to.not.have.property('authorization');
      });
    }

    it('is asked for once, then the password is sent at once, until ten minutes are over', async () => {
      const { ask, paths, advance } = setup(hiding('Basic realm="x"'));
      const first = ['r.example.com -', 'r.example.com -', `r.example.com ${BASIC}`];
      for (const name of ['a/one', 'b/two']) await ask({ credential: CREDENTIAL, root, ...at(name) });
      expect(paths()).to.deep.equal([...first, `r.example.com ${BASIC}`]);
      advance(600_000);
      await ask({ credential: CREDENTIAL, root, ...at('c/three') });
      expect(paths().slice(4)).to.deep.equal(first);
    });

    it('gets no login where it cannot be asked, or where another host answers for it', async () => {
      const elsewhere = { ...asksFor('Basic realm="x"'), url: new URL('https://other.example.com/v2/') };
      const fails = () => {
        throw new ImageError('no answer', { code: 'unavailable', temporary: true });
      };
      for (const answer of [() => elsewhere, fails]) {
        const { ask, paths } = setup(({ url }) => (url.pathname === '/v2/' ? answer() : { status: 404 }));
        expect(await ask({ credential: CREDENTIAL, root })).to.include({ status: 404 });
        expect(paths()).to.deep.equal(['r.example.com -', 'r.example.com -']);
      }
    });
  });
});
