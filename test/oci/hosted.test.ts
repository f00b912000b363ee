import { expect } from 'chai';
import nock from 'nock';
import type { Send } from '../../src/oci/transport.ts';
import { INDEX, indexOf, sha256, startResolver } from './server.ts';

// Importing nock takes over the process's http; the other tests have real servers.
nock.restore();

/** nock does not see the undici package, but the global fetch. */
const overFetch: Send = async ({ method, url, headers, signal }) => {
  const response = await fetch(url, { method, headers, signal, redirect: 'manual' });
  const body = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(response.headers), body, url };
};

describe('a hosted registry', () => {
  const body = JSON.stringify(indexOf('linux/amd64', 'linux/arm64'));
  const manifest = { 'content-type': INDEX, 'docker-content-digest': sha256(body) };
  const access = { namespace: 'default', pullSecrets: [], always: false };
  const never = new AbortController().signal;

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

  const rows: [image: string, endpoint: string, repository: string, realm: string, service: string, field: string][] = [
    ['nginx:1', 'registry-1.docker.io', 'library/nginx', 'https://auth.docker.io/token', 'registry.docker.io', 'token'],
    [
      'docker.io/user/app:1',
      'registry-1.docker.io',
      'user/app',
      'https://auth.docker.io/token',
      'registry.docker.io',
      'token',
    ],
    ['quay.io/ns/x:1', 'quay.io', 'ns/x', 'https://quay.io/v2/auth', 'quay.io', 'token'],
    ['ghcr.io/ns/x:1', 'ghcr.io', 'ns/x', 'https://ghcr.io/token', 'ghcr.io', 'token'],
    [
      'example.azurecr.io/x:1',
      'example.azurecr.io',
      'x',
      'https://example.azurecr.io/oauth2/token',
      'example.azurecr.io',
      'access_token',
    ],
  ];
  for (const [image, endpoint, repository, realm, service, field] of rows) {
    it(`answers ${image} from ${endpoint}, with a token of ${new URL(realm).host}`, async () => {
      const path = `/v2/${repository}/manifests/1`;
      const scope = `repository:${repository}:pull`;
      const challenge = `Bearer realm="${realm}",service="${service}",scope="${scope}"`;
      nock(`https://${endpoint}`).get(path).reply(401, '{}', { 'www-authenticate': challenge });
      nock(new URL(realm).origin)
        .get(new URL(realm).pathname)
        .query({ service, scope })
        .reply(200, { [field]: 't' });
      nock(`https://${endpoint}`, { reqheaders: { authorization: 'Bearer t' } })
        .get(path)
        .reply(200, body, manifest);
      const harness = startResolver([], { send: overFetch });
      const { platforms } = await harness.resolver.resolve(image, access, never);
      expect(platforms).to.have.length(2);
      expect(harness.requests).to.deep.equal(['GET 401', 'GET 200', 'GET 200']);
      expect(nock.isDone()).to.equal(true);
      harness.stop();
    });
  }
});
