import { expect } from 'chai';
import nock from 'nock';
import type { SendRequest } from '../../src/oci/http/transport.ts';
import type { Resolution } from '../../src/oci/resolver.ts';
import {
  ANYONE,
  CONFIG,
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
  const whoHolds = (authorization: string) => ({ reqheaders: { authorization } });
  const nobody = { badheaders: ['authorization', 'cookie'] };
  const HUB = 'registry-1.docker.io';
  const HUB_REALM = 'https://auth.docker.io/token';

  let harness: Harness | undefined;
  beforeEach(() => {
    nock.activate();
    nock.disableNetConnect();
  });
  stopAfterEach();
  afterEach(() => {
    const isDone = nock.isDone();
    nock.abortPendingRequests();
    nock.cleanAll();
    nock.enableNetConnect();
    nock.restore();
    expect(isDone, 'all was asked').to.equal(true);
  });

  /** Looks up through nock, with these logins in a pull secret. */
  function resolve(image: string, logins: Readonly<Record<string, string>> = {}): Promise<Resolution> {
    harness = startResolver([], { send: overFetch, pullSecrets: async () => [pullSecret('hosted', logins)] });
    const pullSecrets = Object.keys(logins).length === 0 ? [] : ['hosted'];
    return harness.resolver.resolve(image, { ...ANYONE, pullSecrets }, never);
  }

  type Unusual = { challenge?: string; more?: string; service?: string; field?: string; login?: string };
  /** Has a manifest for those with a token, which the realm gives to anybody, or to those with this login. */
  function requiresToken(endpoint: string, path: string, realm: string, unusual: Unusual = {}): void {
    const scope = `repository:${path.replace(/^\/v2\/|\/manifests\/.*$/g, '')}:pull`;
    const { service = endpoint, field = 'token', login } = unusual;
    const { more = `,service="${service}",scope="${scope}"` } = unusual;
    const { challenge = `Bearer realm="${realm}"${more}` } = unusual;
    const named = /service="([^"]*)"/i.exec(challenge)?.[1];
    nock(`https://${endpoint}`, nobody).get(path).reply(401, '{"errors":[]}', { 'www-authenticate': challenge });
    const { origin, pathname } = new URL(realm);
    nock(origin, login === undefined ? nobody : whoHolds(basicOf(login)))
      .get(pathname)
      .query({ ...(named === undefined ? {} : { service: named }), scope })
      .reply(200, { [field]: 't', expires_in: 300, issued_at: '2026-01-01T00:00:00Z' });
  }
  const found = (endpoint: string, path: string) =>
    nock(`https://${endpoint}`, whoHolds('Bearer t')).get(path).reply(200, body, manifest);

  for (const key of ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io', 'https://docker.io/user/']) {
    it(`Docker Hub's login under ${key} goes to auth.docker.io alone`, async () => {
      const path = '/v2/user/app/manifests/latest';
      requiresToken(HUB, path, HUB_REALM, { service: 'registry.docker.io', login: 'me:hunter2' });
      found(HUB, path);
      expect((await resolve('user/app', { [key]: 'me:hunter2' })).platforms).to.have.length(2);
    });
  }

  const stores: [image: string, repository: string, realm: string, status: number, store: string][] = [
    ['nginx', 'library/nginx', HUB_REALM, 307, 'https://production.cloudflare.docker.com/registry/sha256/x?verify=1'],
    ['quay.io/ns/x', 'ns/x', 'https://quay.io/v2/auth', 302, 'https://cdn01.quay.io/sha256/ab?Signature=x'],
    ['ghcr.io/ns/x', 'ns/x', 'https://ghcr.io/token', 307, 'https://pkg-containers.githubusercontent.com/x?sig=y'],
  ];
  for (const [image, repository, realm, status, store] of stores) {
    const host = image.includes('/') ? (image.split('/')[0] ?? '') : HUB;
    it(`${host} keeps its blobs at ${new URL(store).host}, which gets no token`, async () => {
      const config = JSON.stringify({ os: 'linux', architecture: 'arm64' });
      const named = { mediaType: CONFIG, digest: sha256(config), size: config.length };
      const path = `/v2/${repository}/manifests/latest`;
      requiresToken(host, path, realm);
      nock(`https://${host}`, whoHolds('Bearer t'))
        .get(path)
        .reply(200, { schemaVersion: 2, mediaType: IMAGE, config: named, layers: [] }, { 'content-type': IMAGE })
        .get(`/v2/${repository}/blobs/${sha256(config)}`)
        .reply(status, '', { location: store });
      const { origin, pathname, search } = new URL(store);
      nock(origin, nobody).get(`${pathname}${search}`).reply(200, config, { 'content-type': 'binary/octet-stream' });
      expect((await resolve(image)).platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
    });
  }

  const realms: [image: string, realm: string, unusual?: Unusual & { endpoint?: string; repository?: string }][] = [
    ['nginx:1', HUB_REALM, { service: 'registry.docker.io', endpoint: HUB, repository: 'library/nginx' }],
    ['a.azurecr.io/x:1', 'https://a.azurecr.io/oauth2/token', { field: 'access_token' }],
    [
      'nvcr.io/nvidia/cuda:1',
      'https://nvcr.io/proxy_auth',
      { challenge: 'Bearer realm="https://nvcr.io/proxy_auth?scope=repository:nvidia/cuda:pull"' },
    ],
    ['public.ecr.aws/ns/x:1', 'https://public.ecr.aws/token/', { more: ',service="public.ecr.aws",scope="aws"' }],
    ['us-docker.pkg.dev/p/x/y:1', 'https://us-docker.pkg.dev/v2/token', { more: ',service="us-docker.pkg.dev"' }],
    [
      'registry.gitlab.com/g/x:1',
      'https://gitlab.com/jwt/auth',
      { more: ',service="container_registry",error="invalid_token"' },
    ],
    [
      'harbor.example.com/p/x:1',
      'https://harbor.example.com/service/token',
      { challenge: 'bearer Realm = "https://harbor.example.com/service/token" , Service="harbor-registry"' },
    ],
    [
      'both.example.com/x:1',
      'https://both.example.com/token',
      {
        challenge: 'Basic realm="Registry", Bearer realm="https://both.example.com/token",service="s"',
      },
    ],
  ];
  for (const [image, realm, unusual = {}] of realms) {
    it(`${image} is answered with a token of ${realm}`, async () => {
      const { endpoint = image.split('/', 1)[0] ?? '', repository = image.replace(/^[^/]*\/|:1$/g, '') } = unusual;
      const path = `/v2/${repository}/manifests/1`;
      requiresToken(endpoint, path, realm, unusual);
      found(endpoint, path);
      expect((await resolve(image)).platforms).to.have.length(2);
      expect(harness?.requests).to.deep.equal(['GET 401', 'GET 200', 'GET 200']);
    });
  }

  it('ECR requires a login of its own, and answers 400 to that of another registry', async () => {
    const host = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';
    const path = '/v2/x/manifests/1';
    const challenge = { 'www-authenticate': `Basic realm="https://${host}/",service="ecr.amazonaws.com"` };
    nock(`https://${host}`, nobody).get(path).times(2).reply(401, 'Not Authorized', challenge);
    nock(`https://${host}`, whoHolds(basicOf('AWS:wrong')))
      .get(path)
      .reply(400, '{}');
    nock(`https://${host}`, whoHolds(basicOf('AWS:right')))
      .get(path)
      .reply(200, body, manifest);
    const logins = { [`${host}/x`]: 'AWS:wrong', [host]: 'AWS:right' };
    expect((await resolve(`${host}/x:1`, logins)).platforms).to.have.length(2);
  });
});

function basicOf(login: string): string {
  return `Basic ${Buffer.from(login).toString('base64')}`;
}
