/** A small OCI registry on 127.0.0.1 for tests and the demo: pull, authentication, and every way to fail. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type FixturePlatform, type ImageFixture, image, multiPlatform } from '../../../testimg/build.ts';
import { type AuthMode, createAuth } from './auth.ts';
import { createFaults, type Fault, type FaultMatch, faultOf } from './faults.ts';
import { replyOfFaults, sendReply } from './reply.ts';
import { createRoutes } from './routes.ts';
import { createStore } from './store.ts';

export type TestRegistryOptions = {
  /** Default `none`. With `basic` every repository is private, with `bearer` none, until a test says otherwise. */
  readonly auth?: AuthMode;
  /** Passwords by name. */
  readonly users?: Readonly<Record<string, string>>;
};

/** One request. `status` is 0 for one that was not answered (or not yet). */
export type RequestRecord = {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly status: number;
};

export type TestRegistry = {
  /** `127.0.0.1:PORT`; it stays the same over `down` and `up`. */
  readonly host: string;
  /** Stores an image under a tag as it is. Returns its digest. */
  load(repository: string, tag: string, fixture: ImageFixture): string;
  /**
   * Makes an index of the platforms (`amd64`, `arm/v7`, `windows/amd64`, `linux/arm/v7`) and stores it under a tag. Returns its digest.
   * `single`: the manifest of the first platform in place of an index. `note`: makes the digest differ from others'.
   */
  put(repository: string, tag: string, platforms: readonly string[], options?: PutOptions): string;
  /** Every user may pull, and nobody anonymously. */
  makePrivate(repository: string): void;
  /** Returns what takes this fault away again. */
  inject(fault: Fault, match?: FaultMatch): () => void;
  clearFaults(): void;
  requests(): RequestRecord[];
  clearRequests(): void;
  /** Connections are refused until `up`; those that are open are cut. */
  down(): Promise<void>;
  up(): Promise<void>;
  stop(): Promise<void>;
};

type PutOptions = { readonly single?: boolean; readonly note?: string };

/** Starts a registry without content. Stop it, or the process does not end. */
export async function startTestRegistry(options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const store = createStore();
  const faults = createFaults();
  const mode = options.auth ?? 'none';
  const auth = createAuth(mode, options.users ?? {});
  let records: { -readonly [K in keyof RequestRecord]: RequestRecord[K] }[] = [];
  let server: Server | undefined = createServer();
  const port = await listen(server, 0);
  const host = `127.0.0.1:${port}`;
  const answer = createRoutes({
    store,
    auth,
    realm: mode === 'bearer' ? `http://${host}/token` : undefined,
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? '';
    const url = new URL(request.url ?? '/', `http://${host}`);
    const record = { method, path: url.pathname, status: 0 };
    records.push(record);
    const met = faults.meet(method, url.pathname);
    // All of it, or the connection could not be used again.
    request.resume();
    const delay = faultOf(met, 'delay');
    if (delay) await pause(delay.ms, response);
    if (faultOf(met, 'hang') || response.destroyed) return;
    if (faultOf(met, 'reset')) return void request.socket.destroy();
    const header = (name: string) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(',') : value;
    };
    const reply = replyOfFaults(met) ?? answer({ method, url, header });
    // Before it is sent: a client that has its answer finds it in the log.
    record.status = reply.status;
    sendReply(response, reply, method === 'HEAD', met);
  }

  function attach(to: Server): void {
    to.on('request', (request, response) => {
      // Only a client that goes away while it sends can make this fail.
      serve(request, response).catch(() => response.destroy());
    });
  }
  attach(server);

  async function down(): Promise<void> {
    const stopping = server;
    server = undefined;
    if (stopping === undefined) return;
    await new Promise<void>((resolve) => {
      stopping.close(() => resolve());
      stopping.closeAllConnections();
    });
  }

  return {
    host,
    load: store.load,
    put(repository, tag, platforms, { single = false, ...noted } = {}) {
      const parsed = platforms.map(parsePlatform);
      const [only] = parsed;
      return store.load(repository, tag, single && only ? image(only, noted) : multiPlatform(parsed, noted));
    },
    makePrivate: auth.makePrivate,
    inject: faults.inject,
    clearFaults: faults.clear,
    requests: () => records.map((record) => ({ ...record })),
    clearRequests() {
      records = [];
    },
    down,
    async up() {
      if (server !== undefined) return;
      server = createServer();
      attach(server);
      await listen(server, port);
    },
    stop: down,
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

/** Ends early when the connection does, which `stop` brings about. */
function pause(ms: number, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    response.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function parsePlatform(text: string): FixturePlatform {
  const parts = text.split('/');
  const named = parts.length > 1 && !/^v\d+$/.test(parts[1] ?? '') ? parts : ['linux', ...parts];
  const [os = 'linux', architecture = '', variant] = named;
  return variant === undefined ? { os, architecture } : { os, architecture, variant };
}
