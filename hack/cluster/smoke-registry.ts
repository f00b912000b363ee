import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Agent, request as send } from 'undici';
import { account } from './account.ts';
import { createAuthority } from './certificates.ts';
import { at } from './json.ts';
import { type Registry, startRegistry } from './registry.ts';
import type { RegistryOptions } from './registry-config.ts';
import { startFront } from './registry-front.ts';
import { step } from './smoke-step.ts';

// Proves that registries do what the end-to-end tests rely on: npx tsx hack/cluster/smoke-registry.ts

async function put(url: string, type: string, body: Buffer, authorization?: string): Promise<void> {
  const headers = { 'content-type': type, ...(authorization ? { authorization } : {}) };
  const answer = await send(url, { method: 'PUT', headers, body });
  assert.equal(answer.statusCode, 201, await answer.body.text());
}

/** The least that the registry accepts as an image: an empty configuration and a manifest without layers. */
async function push(registry: Registry, authorization?: string): Promise<void> {
  const headers = authorization ? { authorization } : {};
  const upload = await send(`${registry.url}/v2/a/b/blobs/uploads/`, { method: 'POST', headers });
  assert.equal(upload.statusCode, 202, await upload.body.text());
  const config = Buffer.from('{"architecture":"arm64","os":"linux"}');
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
  const place = new URL(String(upload.headers.location), registry.url);
  place.searchParams.set('digest', digest);
  await put(place.href, 'application/octet-stream', config, authorization);
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const descriptor = { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: config.length };
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: descriptor, layers: [] }));
  await put(`${registry.url}/v2/a/b/manifests/1`, mediaType, manifest, authorization);
}

/**
 * Returns the status of `a/b:1`. Without a matching `Accept` header, the registry answers 404 for a manifest that is
 * not Docker's.
 */
async function statusOfManifest(
  { url }: { readonly url: string },
  options: { authorization?: string; dispatcher?: Agent; repository?: string } = {},
): Promise<number> {
  const { authorization, dispatcher, repository = 'a/b' } = options;
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const headers = { accept, 'user-agent': 'smoke', ...(authorization ? { authorization } : {}) };
  const to = `${url}/v2/${repository}/manifests/1`;
  const answer = await send(to, { method: 'HEAD', headers, ...(dispatcher ? { dispatcher } : {}) });
  await answer.body.dump();
  return answer.statusCode;
}

async function withRegistry(options: RegistryOptions, run: (registry: Registry) => Promise<void>): Promise<void> {
  const registry = await startRegistry(options);
  try {
    await run(registry);
  } finally {
    await registry.remove();
  }
}

const basic = ({ username, password }: { username: string; password: string }) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const parameters = (actions: string) => ({ service: 'archaware-registry', scope: `repository:a/b:${actions}` });

async function token(registry: Registry, actions: string, authorization?: string): Promise<string> {
  const headers = authorization ? { authorization } : {};
  const answer = await send(`${registry.tokenServer?.realm}?${new URLSearchParams(parameters(actions))}`, { headers });
  return `Bearer ${String(at(await answer.body.json(), 'token'))}`;
}

async function byIdentityToken(registry: Registry, refreshToken: string): Promise<{ status: number; token: string }> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: 'smoke', ...parameters('pull') };
  const body = new URLSearchParams(form).toString();
  const answer = await send(String(registry.tokenServer?.realm), { method: 'POST', headers, body });
  return { status: answer.statusCode, token: `Bearer ${String(at(await answer.body.json(), 'access_token'))}` };
}

await step('push, access log, stop and start', () =>
  withRegistry({}, async (registry) => {
    await push(registry);
    await registry.forgetRequests();
    assert.equal(await statusOfManifest(registry), 200);
    await registry.stop();
    await assert.rejects(statusOfManifest(registry));
    await registry.start();
    assert.equal(await statusOfManifest(registry), 200);
    const expected = { method: 'HEAD', path: '/v2/a/b/manifests/1', status: 200, userAgent: 'smoke' };
    assert.deepEqual(await registry.requests(), [expected, expected]);
  }),
);

await step('Basic', () =>
  withRegistry({ htpasswd: true }, async (registry) => {
    await push(registry, basic(account));
    assert.equal(await statusOfManifest(registry), 401);
    assert.equal(await statusOfManifest(registry, { authorization: basic({ ...account, password: 'wrong' }) }), 401);
    assert.equal(await statusOfManifest(registry, { authorization: basic(account) }), 200);
  }),
);

await step('Bearer, by name and password and by identity token', () =>
  withRegistry({ tokenAuth: { anonymousPull: true } }, async (registry) => {
    await push(registry, await token(registry, 'pull,push', basic(account)));
    assert.equal(await statusOfManifest(registry), 401);
    assert.equal(await statusOfManifest(registry, { authorization: await token(registry, 'pull') }), 200);
    const granted = await byIdentityToken(registry, account.identityToken);
    assert.equal(await statusOfManifest(registry, { authorization: granted.token }), 200);
    assert.equal((await byIdentityToken(registry, 'another')).status, 401);
    assert.deepEqual(
      registry.tokenServer?.requests().map(({ method, user, status }) => [method, user, status]),
      [
        ['GET', account.username, 200],
        ['GET', undefined, 200],
        ['POST', account.username, 200],
        ['POST', undefined, 401],
      ],
    );
  }),
);

await step('TLS, on the contents of another', () =>
  withRegistry({}, async (other) => {
    await push(other);
    await withRegistry({ tls: true, contentsOf: other }, async (registry) => {
      await assert.rejects(statusOfManifest(registry), /self-signed|certificate/);
      const dispatcher = new Agent({ connect: { ca: await readFile(registry.caFile ?? '') } });
      assert.equal(await statusOfManifest(registry, { dispatcher }), 200);
      await dispatcher.destroy();
    });
    await withRegistry({ tls: 'mutual', contentsOf: other }, async (registry) => {
      const [ca, cert, key] = await Promise.all(
        [registry.caFile, registry.client?.certificate, registry.client?.key].map((file) => readFile(file ?? '')),
      );
      const strange = new Agent({ connect: { ca } });
      await assert.rejects(statusOfManifest(registry, { dispatcher: strange }));
      const dispatcher = new Agent({ connect: { ca, cert, key } });
      assert.equal(await statusOfManifest(registry, { dispatcher }), 200);
      await Promise.all([strange.destroy(), dispatcher.destroy()]);
    });
  }),
);

// Such a cache sends no credentials to a registry that requires Bearer tokens, because the realm is on another port
// (distribution v3.1.2).
await step('pull-through cache of a private registry', () =>
  withRegistry({ htpasswd: true }, async (upstream) => {
    await push(upstream, basic(account));
    await withRegistry({ mirrorOf: { url: upstream.url, account } }, async (mirror) => {
      assert.equal(await statusOfManifest(mirror), 200);
      await upstream.stop();
      assert.equal(await statusOfManifest(mirror, { repository: 'a/unseen' }), 404);
    });
  }),
);

await step('a front with a path prefix, and one with TLS', () =>
  withRegistry({}, async (registry) => {
    await push(registry);
    const prefixed = await startFront({ registry, prefix: 'hub' });
    const authority = createAuthority('smoke');
    const secure = await startFront({ registry, authority });
    const dispatcher = new Agent({ connect: { ca: authority.certificate } });
    try {
      assert.equal(await statusOfManifest(prefixed, { repository: 'hub/a/b' }), 200);
      assert.equal(await statusOfManifest(prefixed, { authorization: basic(account) }), 404);
      prefixed.answerWith(503);
      assert.equal(await statusOfManifest(prefixed, { repository: 'hub/a/b' }), 503);
      assert.deepEqual(
        prefixed.requests().map(({ method, path, login, status }) => [method, path, login?.username, status]),
        [
          ['HEAD', '/v2/hub/a/b/manifests/1', undefined, 200],
          ['HEAD', '/v2/a/b/manifests/1', account.username, 404],
          ['HEAD', '/v2/hub/a/b/manifests/1', undefined, 503],
        ],
      );
      await assert.rejects(statusOfManifest(secure), /certificate/);
      assert.equal(await statusOfManifest(secure, { dispatcher }), 200);
    } finally {
      await Promise.all([prefixed.stop(), secure.stop(), dispatcher.destroy()]);
    }
  }),
);
