import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { expect } from 'chai';
import { listen } from '../../src/kit/network/listen.ts';
import { createImageCache } from '../../src/oci/cache.ts';
import type { Access, ReadSecret } from '../../src/oci/credentials/keyring.ts';
import { createRoutes } from '../../src/oci/endpoints/mirrors.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { createResolver, type Resolver, type ResolverOptions } from '../../src/oci/resolver.ts';
import { PATIENCE_MS } from '../simulator/client.ts';
import { patientClock } from '../support/patient-clock.ts';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A registry that answers exactly what a test says, and records its requests. */
export type ScriptedServer = Awaited<ReturnType<typeof startServer>>;

export const INDEX = 'application/vnd.oci.image.index.v1+json';
export const IMAGE = 'application/vnd.oci.image.manifest.v1+json';
export const CONFIG = 'application/vnd.oci.image.config.v1+json';

/** A pod without pull secrets. */
export const ANYONE: Access = { namespace: 'default', pullSecrets: [], always: false };
export const never = new AbortController().signal;

/** The error with which it fails; it must be an ImageError. */
export async function failureOf(promise: Promise<unknown>): Promise<ImageError> {
  const error = await promise.catch((reason: unknown) => reason);
  return error instanceof ImageError ? error : expect.fail(String(error));
}

/** A pull secret with these logins (`user:password`) by registry. */
export function pullSecret(name: string, logins: Readonly<Record<string, string>>): ReadSecret {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const auths = Object.fromEntries(Object.entries(logins).map(([host, login]) => [host, { auth: base64(login) }]));
  const data = { '.dockerconfigjson': base64(JSON.stringify({ auths })) };
  return { name, type: 'kubernetes.io/dockerconfigjson', data };
}

export function sha256(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

export function reply(status: number, headers: Record<string, string> = {}, body = ''): Answer {
  return (request, response) => {
    response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
}

/** An answer by the Authorization header; that for no header is `nobody`'s. */
export const byLogin =
  (answers: Readonly<Record<string, Answer>>, otherwise: Answer): Answer =>
  (request, response) =>
    (answers[request.headers.authorization ?? 'nobody'] ?? otherwise)(request, response);

const running: (() => unknown)[] = [];

/** For a suite: what its tests start of this file ends with each of them. */
export function stopAfterEach(): void {
  afterEach(() => Promise.all(running.splice(0).map((stop) => stop())));
}

/** @param tls speaks https instead of http */
export async function startServer(tls?: ServerOptions) {
  const answers = new Map<string, Answer>();
  const asked: string[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const listener: RequestListener = (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    const path = (request.url ?? '').split('?')[0] ?? '';
    (answers.get(path) ?? answers.get('*') ?? reply(404))(request, response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  const port = await listen(server, '127.0.0.1:0');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  running.push(stop);
  return {
    /** 127.0.0.1:port */
    host: `127.0.0.1:${port}`,
    /** `GET /v2/…`, in order. */
    asked,
    headers,
    /** Sets the answer of a path; `*` answers all others. */
    on: (path: string, answer: Answer): void => void answers.set(path, answer),
    /** Stores a manifest or blob under its digest, and under a tag; returns the digest. */
    put(
      repository: string,
      kind: 'manifests' | 'blobs',
      value: unknown,
      { tag, type = INDEX }: { tag?: string; type?: string } = {},
    ): string {
      const body = typeof value === 'string' ? value : JSON.stringify(value);
      const digest = sha256(body);
      const answer = reply(200, { 'content-type': type, 'docker-content-digest': digest }, body);
      for (const target of tag === undefined ? [digest] : [digest, tag]) {
        answers.set(`/v2/${repository}/${kind}/${target}`, answer);
      }
      return digest;
    },
    stop,
  };
}

/** Waits until a condition holds. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('it did not become so in time');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** An index of platforms, each `os/architecture[/variant]`. */
export function indexOf(...platforms: string[]): { schemaVersion: 2; mediaType: string; manifests: unknown[] } {
  return {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: platforms.map((platform) => {
      const [os, architecture, variant] = platform.split('/');
      return { mediaType: IMAGE, size: 1, digest: sha256(platform), platform: { os, architecture, variant } };
    }),
  };
}

/** Stores a single-platform image; returns its manifest's digest. */
export function putImage(
  server: ScriptedServer,
  repository: string,
  architecture: string,
  tag?: string,
  labels?: object,
): string {
  const body = { architecture, os: 'linux', ...(labels === undefined ? {} : { config: { Labels: labels } }) };
  const digest = server.put(repository, 'blobs', body, { type: 'application/octet-stream' });
  const manifest = { schemaVersion: 2, mediaType: IMAGE, config: { mediaType: CONFIG, digest, size: 1 }, layers: [] };
  return server.put(repository, 'manifests', manifest, { type: IMAGE, ...(tag === undefined ? {} : { tag }) });
}

/** Returns what a resolver knows of an image. Starts no lookup. */
export function knownBy(resolver: Resolver, image: string, access: Access) {
  const look = resolver.look(image, access, () => false);
  if (look.kind !== 'known') return undefined;
  const { kind: _, ...known } = look;
  return known;
}

export type Harness = ReturnType<typeof startResolver>;

/** A resolver with a clock of its own, to which the given hosts are insecure. */
export function startResolver(hosts: readonly string[], overrides: Partial<ResolverOptions> = {}) {
  const controller = new AbortController();
  const stop = () => controller.abort(new Error('stopped'));
  running.push(stop);
  let time = 1_000_000;
  const cached: string[] = [];
  const results: string[] = [];
  const requests: string[] = [];
  const unusable: string[] = [];
  const resolver = createResolver({
    cache: createImageCache(1000),
    ...{ namesSkipped: true, isPrivate: () => false, pullSecrets: async () => [], maxEntries: 1000, maxInFlight: 8 },
    endpointsOf: createRoutes({ mirrors: {}, insecure: hosts, hosts: () => undefined }).endpointsOf,
    ttl: { tag: 600_000, always: 10_000, failure: 30_000 },
    ...{ timeoutMs: 20_000, insecure: hosts, addresses: {}, userAgent: 'archaware-controller/test' },
    ...{ now: () => time, after: patientClock().after, random: () => 0.5 },
    // Who meets a limit does not wait in a queue: the tests of the pace do.
    patienceMs: 0,
    signal: controller.signal,
    telemetry: {
      unusableSecret: ({ namespace, name, reason }) => unusable.push(`${namespace}/${name}: ${reason}`),
      requested: ({ method, code }) => requests.push(`${method} ${code}`),
      resolved: (result) => results.push(result),
      cached: (result) => cached.push(result),
    },
    ...overrides,
  });
  const waiting: ((canonical: string) => void)[] = [];
  resolver.onSettled((canonical) => {
    for (const resolve of waiting.splice(0)) resolve(canonical);
  });
  return {
    resolver,
    /** Returns what is known of an image, or its failure. Starts no lookup. */
    known: (image: string, access: Access) => knownBy(resolver, image, access),
    failure(image: string, access: Access) {
      const look = resolver.look(image, access, () => false);
      return look.kind === 'failed' ? look : undefined;
    },
    cached,
    results,
    requests,
    unusable,
    /** Moves the clock. */
    advance(milliseconds: number): void {
      time += milliseconds;
    },
    /** Resolves when the next lookup ends. */
    settled: () => new Promise<string>((resolve) => waiting.push(resolve)),
    stop,
  };
}
