import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import type { RegistryRequest, RegistryResponse, SendRequest } from '../../src/oci/http/transport.ts';
import {
  failureOf,
  type Harness,
  INDEX,
  indexOf,
  never,
  pullSecret,
  sha256,
  startResolver,
  stopAfterEach,
} from './server.ts';

const ACCESS: Access = { namespace: 'default', pullSecrets: ['s'], always: false };
const REGISTRY = 'reg.example.com';
const BODY = JSON.stringify(indexOf('linux/amd64', 'linux/arm64'));
const PASSWORD = `Basic ${Buffer.from('me:hunter2').toString('base64')}`;

type Answer = { status?: number; headers?: Record<string, string>; body?: string };
type Host = (request: RegistryRequest) => Answer;

const manifest: Answer = { headers: { 'content-type': INDEX, 'docker-content-digest': sha256(BODY) }, body: BODY };
const challenged = (challenge: string): Answer => ({ status: 401, headers: { 'www-authenticate': challenge } });
const redirected = (location: string): Answer => ({ status: 307, headers: { location } });

/** Requires a token for a scope; gives anybody a token for the requested scopes. */
function tokens(name: string, scope: string, then: Host = () => manifest): Host {
  return (request) => {
    const { url, headers } = request;
    if (url.pathname === '/token') {
      return { body: JSON.stringify({ token: `${name}:${url.searchParams.getAll('scope').join('+')}` }) };
    }
    const [, scopes] = new RegExp(`^Bearer ${name}:(.*)$`).exec(headers.authorization ?? '') ?? [];
    return scopes?.split('+').includes(scope) === true
      ? then(request)
      : challenged(`Bearer realm="https://${url.host}/token",service="${name}",scope="${scope}"`);
  };
}

describe('a registry that redirects to another one, which has tokens of its own', () => {
  let harness: Harness | undefined;
  stopAfterEach();

  /** Looks up `reg.example.com/a/b` among these hosts; the log has what each was sent. */
  function world(hosts: Record<string, Host>, logins = false) {
    const log: string[] = [];
    const send: SendRequest = async (request): Promise<RegistryResponse> => {
      const { method, url, headers } = request;
      const path = decodeURIComponent(url.pathname + url.search);
      log.push(
        `${method} ${url.host}${path}${headers.authorization === undefined ? '' : ` [${headers.authorization}]`}`,
      );
      const { status = 200, headers: answered = {}, body = '' } = hosts[url.host]?.(request) ?? { status: 404 };
      return { status, headers: answered, body: Buffer.from(body), url };
    };
    const started = startResolver([], {
      send,
      pullSecrets: async () => (logins ? [pullSecret('s', { [REGISTRY]: 'me:hunter2' })] : []),
    });
    harness = started;
    return {
      log,
      harness: started,
      resolve: (name = 'a/b') => started.resolver.resolve(`${REGISTRY}/${name}`, ACCESS, never),
    };
  }
  const OURS = 'repository:a/b:pull';
  const to =
    (host: string): Host =>
    ({ url }) =>
      redirected(`https://${host}${url.pathname}`);

  it('answers both, one after the other, and keeps the token of the first', async () => {
    const { resolve, log, harness } = world({
      [REGISTRY]: tokens('one', OURS, to('two.example.com')),
      'two.example.com': tokens('two', OURS),
    });
    expect((await resolve()).platforms).to.have.length(2);
    expect(log).to.deep.equal([
      'GET reg.example.com/v2/a/b/manifests/latest',
      'GET reg.example.com/token?service=one&scope=repository:a/b:pull',
      'GET reg.example.com/v2/a/b/manifests/latest [Bearer one:repository:a/b:pull]',
      'GET two.example.com/v2/a/b/manifests/latest',
      'GET two.example.com/token?service=two&scope=repository:a/b:pull',
      'GET two.example.com/v2/a/b/manifests/latest [Bearer two:repository:a/b:pull]',
    ]);
    harness.advance(15_000);
    log.length = 0;
    expect((await resolve()).platforms).to.have.length(2);
    expect(log, 'both tokens are still good').to.deep.equal([
      'HEAD reg.example.com/v2/a/b/manifests/latest [Bearer one:repository:a/b:pull]',
      'HEAD two.example.com/v2/a/b/manifests/latest',
      'HEAD two.example.com/v2/a/b/manifests/latest [Bearer two:repository:a/b:pull]',
    ]);
  });

  it('answers the other anonymously if the first had a password', async () => {
    const { resolve, log } = world(
      {
        [REGISTRY]: (request) =>
          request.headers.authorization === PASSWORD
            ? to('two.example.com')(request)
            : challenged('Basic realm="registry"'),
        'two.example.com': tokens('two', OURS),
      },
      true,
    );
    expect((await resolve()).platforms).to.have.length(2);
    expect(log).to.deep.equal([
      'GET reg.example.com/v2/a/b/manifests/latest',
      `GET reg.example.com/v2/a/b/manifests/latest [${PASSWORD}]`,
      'GET two.example.com/v2/a/b/manifests/latest',
      'GET two.example.com/token?service=two&scope=repository:a/b:pull',
      'GET two.example.com/v2/a/b/manifests/latest [Bearer two:repository:a/b:pull]',
    ]);
  });

  it('asks for the scope of the other as well, where that knows the repository by another name', async () => {
    const { resolve, log } = world({
      [REGISTRY]: ({ url }) => redirected(`https://two.example.com${url.pathname.replace('/v2/', '/v2/org/')}`),
      'two.example.com': tokens('two', 'repository:org/a/b:pull'),
    });
    expect((await resolve()).platforms).to.have.length(2);
    expect(log[2]).to.equal(
      'GET two.example.com/token?service=two&scope=repository:a/b:pull&scope=repository:org/a/b:pull',
    );
  });

  it('requests the scope that a gateway passes on, with its own password', async () => {
    const { resolve, log } = world({ [REGISTRY]: tokens('one', 'repository:org/a/b:pull') }, true);
    expect((await resolve()).platforms).to.have.length(2);
    expect(log[1]).to.equal(
      `GET reg.example.com/token?service=one&scope=repository:a/b:pull&scope=repository:org/a/b:pull [${PASSWORD}]`,
    );
  });

  it('requests one more token if the first one covers too little', async () => {
    const { resolve, log } = world({
      [REGISTRY]: (request) => {
        const answer = tokens('one', 'repository:org/a/b:pull')(request);
        // It names the scope only to clients that have a token.
        const isFirst = request.headers.authorization === undefined && answer.status === 401;
        return isFirst ? challenged('Bearer realm="https://reg.example.com/token"') : answer;
      },
    });
    expect((await resolve()).platforms).to.have.length(2);
    expect(log.filter((line) => line.includes('/token'))).to.deep.equal([
      'GET reg.example.com/token?scope=repository:a/b:pull',
      'GET reg.example.com/token?service=one&scope=repository:a/b:pull&scope=repository:org/a/b:pull',
    ]);
  });

  it('does not go on for ever if it names another scope each time', async () => {
    let turn = 0;
    const { resolve, log } = world({
      [REGISTRY]: ({ url }) => {
        turn += 1;
        return url.pathname === '/token'
          ? { body: '{"token":"t"}' }
          : challenged(`Bearer realm="https://reg.example.com/token",scope="repository:x${turn}:pull"`);
      },
    });
    expect(await failureOf(resolve())).to.include({ code: 'denied' });
    expect(log.length).to.be.at.most(5);
  });

  const ignored: [what: string, scope: string][] = [
    ['of more than reading', 'repository:a/b:pull,push repository:evil:push repository:evil:*'],
    ['of something else', 'registry:catalog:* aws *'],
    ['of no repository', 'repository::pull repository:../x:pull repository:A:pull repository:a b:pull'],
    ['that is very long', `repository:${'a'.repeat(400)}:pull`],
    ['that is an example', 'repository:user/image:pull'],
    ['that smuggles', 'repository:a&account=root:pull repository:a\u00e9:pull'],
  ];
  /** Requires a token for this scope, and is content with any. */
  const wanting =
    (scope: string): Host =>
    ({ url, headers }) => {
      if (url.pathname === '/token') return { body: '{"token":"t"}' };
      const challenge = `Bearer realm="https://reg.example.com/token",scope="${scope}"`;
      return headers.authorization === undefined ? challenged(challenge) : manifest;
    };
  for (const [what, scope] of ignored) {
    it(`ignores a scope ${what}`, async () => {
      const { resolve, log } = world({ [REGISTRY]: wanting(scope) });
      await resolve();
      expect(log[1]).to.equal('GET reg.example.com/token?scope=repository:a/b:pull');
    });
  }

  it('takes no more than four scopes from a challenge', async () => {
    const scopes = ['c', 'd', 'e', 'f', 'g', 'h'].map((name) => `repository:${name}:pull`);
    const { resolve, log } = world({ [REGISTRY]: wanting(scopes.join(' ')) });
    await resolve();
    expect(log[1]?.match(/repository:/g)).to.have.length(5);
    expect(log[1]).to.include('repository:f:pull').and.not.include('repository:g:pull');
  });

  it('takes no scope from the root of the API, which is asked first, once for all images that need it', async () => {
    const log: string[] = [];
    const send: SendRequest = async ({ url, headers }) => {
      log.push(`${decodeURIComponent(url.pathname + url.search)}`);
      if (url.pathname.startsWith('/v2/public/')) expect(headers.authorization).to.equal(undefined);
      const answers: Record<string, Answer> = {
        '/v2/': challenged('Bearer realm="https://reg.example.com/token",scope="repository:some/thing:pull"'),
        '/token': { body: '{"token":"t"}' },
      };
      const {
        status = 200,
        headers: answered = {},
        body = '',
      } = answers[url.pathname] ??
      (headers.authorization === 'Bearer t' || url.pathname.startsWith('/v2/public/') ? manifest : { status: 500 });
      return { status, headers: answered, body: Buffer.from(body), url };
    };
    harness = startResolver([], {
      send,
      isPrivate: (name) => !name.includes('/public/'),
      pullSecrets: async () => [pullSecret('s', { [REGISTRY]: 'me:hunter2' })],
    });
    for (const name of ['a/b', 'c/d', 'public/e']) {
      await harness.resolver.resolve(`${REGISTRY}/${name}`, ACCESS, never);
    }
    expect(log).to.deep.equal([
      '/v2/',
      '/token?scope=repository:a/b:pull',
      '/v2/a/b/manifests/latest',
      '/token?scope=repository:c/d:pull',
      '/v2/c/d/manifests/latest',
      '/v2/public/e/manifests/latest',
    ]);
  });

  it('sends no credential to the other, and refuses its realm on http', async () => {
    const { resolve, log } = world(
      {
        [REGISTRY]: tokens('one', OURS, to('two.example.com')),
        'two.example.com': () => challenged('Bearer realm="http://auth.example.com/token"'),
      },
      true,
    );
    const error = await failureOf(resolve());
    expect(error).to.include({ code: 'forbidden-address' });
    expect(String(error)).to.include('registries.insecure: ["two.example.com"]');
    for (const line of log.filter((each) => each.includes('two.example.com'))) expect(line).to.not.include('[');
  });

  it('asks the other for a token over https and without a credential, if its realm is http on its own host', async () => {
    const two = tokens('two', OURS);
    const { resolve, log } = world(
      {
        [REGISTRY]: tokens('one', OURS, to('two.example.com')),
        'two.example.com': (request) => {
          if (request.url.protocol === 'http:') return { status: 500 };
          const answer = two(request);
          const challenge = 'Bearer realm="http://two.example.com/token",service="two"';
          return answer.status === 401 ? challenged(challenge) : answer;
        },
      },
      true,
    );
    expect((await resolve()).platforms).to.have.length(2);
    expect(log.filter((line) => line.includes('two.example.com'))).to.deep.equal([
      'GET two.example.com/v2/a/b/manifests/latest',
      'GET two.example.com/token?service=two&scope=repository:a/b:pull',
      'GET two.example.com/v2/a/b/manifests/latest [Bearer two:repository:a/b:pull]',
    ]);
  });

  it('is refused if the other redirects to a third one with a challenge', async () => {
    const { resolve, log } = world({
      [REGISTRY]: to('two.example.com'),
      'two.example.com': tokens('two', OURS, to('three.example.com')),
      'three.example.com': tokens('three', OURS),
    });
    expect(await failureOf(resolve())).to.include({ code: 'denied' });
    expect(log.filter((line) => line.includes('three'))).to.have.length(1);
  });
});
