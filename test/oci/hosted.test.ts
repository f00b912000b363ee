import { expect } from 'chai';
import nock from 'nock';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import type { SendRequest } from '../../src/oci/http/transport.ts';
import type { Resolution } from '../../src/oci/resolver.ts';
import {
  CONFIG,
  failureOf,
  type Harness,
  IMAGE,
  INDEX,
  indexOf,
  never,
  pullSecret,
  sha256,
  startResolver,
  stopAfterEach,
} from './server.ts';

// nock replaces the process's http when it is imported; the other tests have real servers.
nock.restore();

/** nock does not intercept the undici package, but it does intercept the global fetch. */
const overFetch: SendRequest = async ({ method, url, headers, body: sent, signal }) => {
  const response = await fetch(url, {
    method,
    headers,
    signal,
    redirect: 'manual',
    ...(sent === undefined ? {} : { body: sent }),
  });
  const body = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(response.headers), body, url };
};

describe('a hosted registry', () => {
  const body = JSON.stringify(indexOf('linux/amd64', 'linux/arm64'));
  const manifest = { 'content-type': INDEX, 'docker-content-digest': sha256(body) };
  const access: Access = { namespace: 'default', pullSecrets: [], always: false };
  const holder: Access = { ...access, pullSecrets: ['hosted'] };

  beforeEach(() => {
    nock.activate();
    nock.disableNetConnect();
  });
  afterEach(() => {
    nock.abortPendingRequests();
    nock.cleanAll();
    nock.enableNetConnect();
    nock.restore();
  });

  describe('as it is', () => {
    let harness: Harness | undefined;
    stopAfterEach();

    /** Looks up through nock, with these logins in a pull secret. */
    function resolve(image: string, logins: Readonly<Record<string, string>> = {}): Promise<Resolution> {
      harness = startResolver([], { send: overFetch, pullSecrets: async () => [pullSecret('hosted', logins)] });
      return harness.resolver.resolve(image, Object.keys(logins).length === 0 ? access : holder, never);
    }
    const failure = (...args: Parameters<typeof resolve>) => failureOf(resolve(...args));
    /** Answers with one challenge for a realm; the request must carry no credential. */
    function challenges(host: string, path: string, realm: string, more = ''): void {
      nock(`https://${host}`, { badheaders: ['authorization'] })
        .get(path)
        .reply(401, '{"errors":[]}', { 'www-authenticate': `Bearer realm="${realm}"${more}` });
    }
    const whoHolds = (authorization: string) => ({ reqheaders: { authorization } });
    const nobody = { badheaders: ['authorization', 'cookie'] };

    const HUB = 'registry-1.docker.io';
    const HUB_REALM = 'https://auth.docker.io/token';
    const HUB_SERVICE = ',service="registry.docker.io"';
    const hubToken = (repository: string) => ({
      service: 'registry.docker.io',
      scope: `repository:${repository}:pull`,
    });

    it('Docker Hub reports that the token covers less, for an image that is private or missing', async () => {
      const path = '/v2/library/secret/manifests/latest';
      challenges(HUB, path, HUB_REALM, HUB_SERVICE);
      nock('https://auth.docker.io', nobody).get('/token').query(hubToken('library/secret')).reply(200, { token: 't' });
      const less = `Bearer realm="${HUB_REALM}"${HUB_SERVICE},scope="x",error="insufficient_scope"`;
      nock(`https://${HUB}`, whoHolds('Bearer t')).get(path).reply(401, '{}', { 'www-authenticate': less });
      expect(await failure('secret')).to.include({ code: 'denied', temporary: false, endpoint: 'docker.io' });
      expect(nock.isDone()).to.equal(true);
    });

    for (const key of ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io', 'https://docker.io/user/']) {
      it(`Docker Hub's login under ${key} goes to auth.docker.io alone`, async () => {
        const path = '/v2/user/app/manifests/latest';
        challenges(HUB, path, HUB_REALM, HUB_SERVICE);
        nock('https://auth.docker.io', whoHolds(basicOf('me:hunter2')))
          .get('/token')
          .query(hubToken('user/app'))
          .reply(200, { token: 't', access_token: 't', expires_in: 300, issued_at: '2026-01-01T00:00:00Z' });
        nock(`https://${HUB}`, whoHolds('Bearer t')).get(path).reply(200, body, manifest);
        expect((await resolve('user/app', { [key]: 'me:hunter2' })).platforms).to.have.length(2);
        expect(nock.isDone()).to.equal(true);
      });
    }

    it('Docker Hub limits, without saying for how long', async () => {
      nock(`https://${HUB}`)
        .get('/v2/library/nginx/manifests/latest')
        .reply(429, '{"errors":[{"code":"TOOMANYREQUESTS"}]}', { 'ratelimit-limit': '100;w=21600' });
      expect(await failure('nginx')).to.include({ code: 'rate-limited', temporary: true, retryAfterMs: 1000 });
    });

    it('Docker Hub refuses a login that is wrong, and is then asked anonymously', async () => {
      const path = '/v2/library/nginx/manifests/latest';
      challenges(HUB, path, HUB_REALM, HUB_SERVICE);
      challenges(HUB, path, HUB_REALM, HUB_SERVICE);
      nock('https://auth.docker.io', whoHolds(basicOf('me:wrong')))
        .get('/token')
        .query(true)
        .reply(401, '{}');
      nock('https://auth.docker.io', nobody).get('/token').query(true).reply(200, { token: 't' });
      nock(`https://${HUB}`, whoHolds('Bearer t')).get(path).reply(200, body, manifest);
      expect((await resolve('nginx', { 'docker.io': 'me:wrong' })).platforms).to.have.length(2);
      expect(nock.isDone()).to.equal(true);
    });

    const stores: [image: string, repository: string, realm: string, status: number, store: string][] = [
      ['nginx', 'library/nginx', HUB_REALM, 307, 'https://production.cloudflare.docker.com/registry/sha256/x?verify=1'],
      ['quay.io/ns/x', 'ns/x', 'https://quay.io/v2/auth', 302, 'https://cdn01.quay.io/sha256/ab?Signature=x'],
      ['ghcr.io/ns/x', 'ns/x', 'https://ghcr.io/token', 307, 'https://pkg-containers.githubusercontent.com/x?sig=y'],
    ];
    for (const [image, repository, realm, status, store] of stores) {
      const host = image.includes('/') ? (image.split('/')[0] ?? '') : HUB;
      it(`${host} keeps its blobs at ${new URL(store).host}, which gets no token`, async () => {
        const config = JSON.stringify({ os: 'linux', architecture: 'arm64' });
        const single = JSON.stringify({
          schemaVersion: 2,
          mediaType: IMAGE,
          config: { mediaType: CONFIG, digest: sha256(config), size: config.length },
          layers: [],
        });
        const path = `/v2/${repository}/manifests/latest`;
        challenges(host, path, realm);
        nock(new URL(realm).origin).get(new URL(realm).pathname).query(true).reply(200, { token: 't' });
        nock(`https://${host}`, whoHolds('Bearer t')).get(path).reply(200, single, { 'content-type': IMAGE });
        nock(`https://${host}`, whoHolds('Bearer t'))
          .get(`/v2/${repository}/blobs/${sha256(config)}`)
          .reply(status, '', { location: store });
        const { origin, pathname, search } = new URL(store);
        nock(origin, nobody).get(`${pathname}${search}`).reply(200, config, { 'content-type': 'binary/octet-stream' });
        expect((await resolve(image)).platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
        expect(nock.isDone()).to.equal(true);
      });
    }

    it('Quay gives everybody a token, and then reports that it is not enough', async () => {
      challenges('quay.io', '/v2/ns/secret/manifests/1', 'https://quay.io/v2/auth', ',service="quay.io"');
      nock('https://quay.io', nobody).get('/v2/auth').query(true).reply(200, { token: 't' });
      nock('https://quay.io', whoHolds('Bearer t')).get('/v2/ns/secret/manifests/1').reply(401, '{}');
      expect(await failure('quay.io/ns/secret:1')).to.include({ code: 'denied', endpoint: 'quay.io' });
    });

    it('Quay is asked for the digest if an image names both that and a tag, with a robot account of a namespace', async () => {
      const path = `/v2/ns/x/manifests/${sha256(body)}`;
      challenges('quay.io', path, 'https://quay.io/v2/auth', ',service="quay.io",scope="repository:ns/x:pull"');
      nock('https://quay.io', whoHolds(basicOf('ns+robot:hunter2')))
        .get('/v2/auth')
        .query({ service: 'quay.io', scope: 'repository:ns/x:pull' })
        .reply(200, { token: 't' });
      nock('https://quay.io', whoHolds('Bearer t')).get(path).reply(200, body, manifest);
      const image = `quay.io/ns/x:tag@${sha256(body)}`;
      expect(await resolve(image, { 'quay.io/ns': 'ns+robot:hunter2' })).to.include({ digest: sha256(body) });
      expect(nock.isDone()).to.equal(true);
    });

    it('GHCR already refuses the token for a private image', async () => {
      const path = '/v2/ns/secret/manifests/1';
      challenges('ghcr.io', path, 'https://ghcr.io/token', ',service="ghcr.io",scope="repository:user/image:pull"');
      nock('https://ghcr.io', nobody)
        .get('/token')
        .query({ service: 'ghcr.io', scope: 'repository:ns/secret:pull' })
        .reply(403, '{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}');
      expect(await failure('ghcr.io/ns/secret:1')).to.include({ code: 'denied', temporary: false });
      expect(nock.isDone()).to.equal(true);
    });

    type Realm = [image: string, token: string, service: string | undefined, unusual?: Unusual];
    type Unusual = { endpoint?: string; repository?: string; field?: string; challenge?: string };
    const realms: Realm[] = [
      ['nginx:1', HUB_REALM, 'registry.docker.io', { endpoint: HUB, repository: 'library/nginx' }],
      ['docker.io/user/app:1', HUB_REALM, 'registry.docker.io', { endpoint: HUB }],
      ['quay.io/ns/x:1', 'https://quay.io/v2/auth', 'quay.io'],
      ['ghcr.io/ns/x:1', 'https://ghcr.io/token', 'ghcr.io'],
      ['a.azurecr.io/x:1', 'https://a.azurecr.io/oauth2/token', 'a.azurecr.io', { field: 'access_token' }],
      [
        'nvcr.io/nvidia/cuda:1',
        'https://nvcr.io/proxy_auth',
        undefined,
        { challenge: 'Bearer realm="https://nvcr.io/proxy_auth?scope=repository:nvidia/cuda:pull"' },
      ],
      [
        'public.ecr.aws/ns/x:1',
        'https://public.ecr.aws/token/',
        'public.ecr.aws',
        { challenge: 'Bearer realm="https://public.ecr.aws/token/",service="public.ecr.aws",scope="aws"' },
      ],
      [
        'europe-docker.pkg.dev/project/x/y:1',
        'https://europe-docker.pkg.dev/v2/token',
        'europe-docker.pkg.dev',
        { challenge: 'Bearer realm="https://europe-docker.pkg.dev/v2/token",service="europe-docker.pkg.dev"' },
      ],
      [
        'registry.gitlab.com/group/project/x:1',
        'https://gitlab.com/jwt/auth',
        'container_registry',
        { challenge: 'Bearer realm="https://gitlab.com/jwt/auth",service="container_registry",error="invalid_token"' },
      ],
      [
        'harbor.example.com/p/x:1',
        'https://harbor.example.com/service/token',
        'harbor-registry',
        { challenge: 'bearer Realm = "https://harbor.example.com/service/token" , Service="harbor-registry"' },
      ],
      [
        'both.example.com/x:1',
        'https://both.example.com/token',
        's',
        { challenge: 'Basic realm="Registry", Bearer realm="https://both.example.com/token",service="s"' },
      ],
    ];
    for (const [image, token, service, unusual = {}] of realms) {
      it(`${image} is answered with a token of ${token}`, async () => {
        const {
          endpoint = image.split('/')[0],
          repository = image.replace(/^[^/]*\/|:1$/g, ''),
          field = 'token',
        } = unusual;
        const scope = `repository:${repository}:pull`;
        const { challenge = `Bearer realm="${token}",service="${service}",scope="${scope}"` } = unusual;
        const path = `/v2/${repository}/manifests/1`;
        nock(`https://${endpoint}`).get(path).reply(401, '{}', { 'www-authenticate': challenge });
        const { origin, pathname } = new URL(token);
        nock(origin)
          .get(pathname)
          .query({ ...(service === undefined ? {} : { service }), scope })
          .reply(200, { [field]: 't' });
        nock(`https://${endpoint}`, whoHolds('Bearer t')).get(path).reply(200, body, manifest);
        expect((await resolve(image)).platforms).to.have.length(2);
        expect(harness?.requests).to.deep.equal(['GET 401', 'GET 200', 'GET 200']);
        expect(nock.isDone()).to.equal(true);
      });
    }

    it('ECR requires a login of its own, and answers 400 to that of another registry', async () => {
      const host = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';
      const path = '/v2/x/manifests/1';
      const challenge = { 'www-authenticate': `Basic realm="https://${host}/",service="ecr.amazonaws.com"` };
      nock(`https://${host}`, nobody).get(path).times(3).reply(401, 'Not Authorized', challenge);
      nock(`https://${host}`, whoHolds(basicOf('AWS:wrong')))
        .get(path)
        .reply(400, '{}');
      nock(`https://${host}`, whoHolds(basicOf('AWS:right')))
        .get(path)
        .reply(200, body, manifest);
      const logins = { [`${host}/x`]: 'AWS:wrong', [host]: 'AWS:right' };
      expect((await resolve(`${host}/x:1`, logins)).platforms).to.have.length(2);
    });

    it('registry.k8s.io redirects to a region, which gets nothing of what the request carried', async () => {
      const path = '/v2/pause/manifests/3.10';
      const region = 'https://europe-west3-docker.pkg.dev';
      nock('https://registry.k8s.io')
        .get(path)
        .reply(307, '', { location: `${region}/v2/k8s-artifacts-prod/images${path.slice(3)}` });
      nock(region, nobody)
        .get(`/v2/k8s-artifacts-prod/images${path.slice(3)}`)
        .reply(200, body, manifest);
      expect((await resolve('registry.k8s.io/pause:3.10')).platforms).to.have.length(2);
    });
  });
});

function basicOf(login: string): string {
  return `Basic ${Buffer.from(login).toString('base64')}`;
}
