import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { Content, ImageFixture } from '../../testimg/build.ts';

export type LimitedRegistryOptions = {
  /** By tag, all in one repository. */
  readonly images: ReadonlyMap<string, ImageFixture>;
  readonly repository: string;
  /** The delay before each answer. */
  readonly delayMs: number;
  /** The number of GETs that are answered in a window; the others get 429 with the seconds until the next window. */
  readonly perWindow: number;
  readonly windowMs: number;
  /** Certificate and key, PEM. Default: plain http. */
  readonly tls?: { readonly cert: string; readonly key: string };
};

/** A request that was answered. */
export type Asked = {
  readonly kind: 'manifest' | 'blob' | 'other';
  readonly method: string;
  readonly status: number;
  /** Counted from the first GET; windows follow one another without a gap. */
  readonly window: number;
  /** Milliseconds since its window began. */
  readonly intoWindowMs: number;
};

/** A registry that answers slowly and seldom, like Docker Hub to users who have not paid: HEADs are free. */
export type LimitedRegistry = {
  readonly host: string;
  /** In the order of the answers. */
  asked(): readonly Asked[];
  stop(): Promise<void>;
};

/** Starts the registry on a free port of the loopback address, in this process. */
export async function startLimitedRegistry(options: LimitedRegistryOptions): Promise<LimitedRegistry> {
  const { delayMs, perWindow, windowMs } = options;
  const contents = contentsOf(options);
  const asked: Asked[] = [];
  let opened: number | undefined;
  let current = { window: 0, taken: 0 };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    const kind =
      /\/(manifest|blob)s\//.exec(url)?.[1] === 'blob' ? 'blob' : url.includes('/manifests/') ? 'manifest' : 'other';
    const isCounted = method === 'GET' && kind !== 'other';
    if (isCounted) opened ??= performance.now();
    const sinceMs = opened === undefined ? 0 : performance.now() - opened;
    const window = Math.floor(sinceMs / windowMs);
    const intoWindowMs = sinceMs - window * windowMs;
    if (current.window !== window) current = { window, taken: 0 };
    const isRefused = isCounted && ++current.taken > perWindow;
    const found = contents.get(url.split('?')[0] ?? '');
    const status = isRefused ? 429 : kind === 'other' || found !== undefined ? 200 : 404;
    await delay(delayMs);
    asked.push({ kind, method, status, window, intoWindowMs });
    const headers = isRefused
      ? { 'retry-after': String(Math.ceil((windowMs - intoWindowMs) / 1000)) }
      : { 'content-type': found?.mediaType ?? 'text/plain', 'docker-content-digest': found?.digest ?? '' };
    response.writeHead(status, headers).end(status === 200 && method === 'GET' ? found?.bytes : undefined);
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) => void answer(request, response);
  const server = options.tls === undefined ? createServer(onRequest) : createSecureServer(options.tls, onRequest);
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  return {
    host: `127.0.0.1:${address.port}`,
    asked: () => [...asked],
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** By path. */
function contentsOf({ images, repository }: LimitedRegistryOptions) {
  return new Map<string, Content>(
    [...images].flatMap(([tag, { root, manifests, blobs }]) => [
      [`/v2/${repository}/manifests/${tag}`, root] as const,
      ...manifests.map((manifest) => [`/v2/${repository}/manifests/${manifest.digest}`, manifest] as const),
      ...blobs.map((blob) => [`/v2/${repository}/blobs/${blob.digest}`, blob] as const),
    ]),
  );
}
