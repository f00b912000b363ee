import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, createServer as createSecureServer, request as forwardSecurely } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyPair } from '../../../hack/cluster/certificates.ts';
import { listen } from '../../../src/kit/network/listen.ts';
import { changeKubeconfig } from './kubeconfig.ts';
import { type Choose, createAlterations } from './proxy-alterations.ts';

/** The API server, or a registry, behind a proxy. */
export type Upstream = {
  readonly server: string;
  /** Path of its authority, PEM; only where it speaks HTTPS. */
  readonly caFile?: string;
};

/** A request that came through, in the order in which requests came. */
export type ProxiedRequest = {
  readonly method: string;
  readonly path: string;
  /** As it was sent. */
  readonly body: string;
  /** Of the answer; 0 until there is one. */
  readonly status: number;
  /** The answer is complete; its place among all ends. */
  readonly endedAs: number;
};

/** A reverse proxy in front of the API server that one process goes through, so that its requests can be distinguished. */
export type ApiProxy = {
  /** The kubeconfig at `path`, but through the proxy; returns the path of the new one. */
  kubeconfig(path: string): Promise<string>;
  requests(): ProxiedRequest[];
  /** Requests that write, without those to the Lease and to the leader's status. */
  writes(): ProxiedRequest[];
  leaseWrites(): ProxiedRequest[];
  /** 127.0.0.1:PORT. */
  readonly host: string;
  /** Holds matching requests back until `release`. */
  hold(matches: (method: string, path: string) => boolean): { held(): number; release(): void };
  /** Lets requests go wrong from now on; returns what ends that. Watches that are open take part with their next event. */
  alter(choose: Choose): () => void;
  /** Resets the connections that watch and leaves the others alone; returns how many there were. */
  resetWatches(): number;
  /** Resets every connection. */
  resetAll(): void;
  /** Serves with another certificate from now on, and resets every connection. Only where it speaks TLS. */
  renew(pair: KeyPair): void;
  close(): Promise<void>;
};

type Entry = { method: string; path: string; body: string; status: number; endedAs: number };
type Hold = { matches: (method: string, path: string) => boolean; waiting: (() => void)[] };

const isLease = ({ path }: ProxiedRequest) => path.includes('/leases');
const isStatus = ({ path }: ProxiedRequest) => path.includes('/configmaps');
const isWrite = ({ method }: ProxiedRequest) => method !== 'GET';

/** Starts a proxy in front of the cluster's API server, or of a registry. It speaks HTTP on 127.0.0.1, plain unless there is a `pair`. */
export async function startApiProxy(cluster: Upstream, pair?: KeyPair): Promise<ApiProxy> {
  const authority = cluster.caFile === undefined ? {} : { ca: await readFile(cluster.caFile) };
  const agent = new Agent({ ...authority, keepAlive: true });
  const alterations = createAlterations();
  const entries: Entry[] = [];
  const watches = new Set<Socket>();
  const sockets = new Set<Socket>();
  let holds: Hold[] = [];
  let ends = 0;

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const entry: Entry = { method: incoming.method ?? '', path: incoming.url ?? '', body: '', status: 0, endedAs: 0 };
    entries.push(entry);
    const hold = holds.find(({ matches }) => matches(entry.method, entry.path));
    if (hold !== undefined) await new Promise<void>((resolve) => hold.waiting.push(resolve));
    const altered = alterations.of(entry.method, entry.path);
    if (altered.delayMs !== undefined) await delay(altered.delayMs, undefined, { ref: false });
    if (altered.status !== undefined) {
      entry.status = altered.status;
      incoming.resume();
      const after = altered.retryAfter === undefined ? {} : { 'retry-after': String(altered.retryAfter) };
      outgoing.writeHead(altered.status, { ...after, 'content-type': 'application/json' }).end('{}');
      return;
    }
    const target = new URL(entry.path, cluster.server);
    const secure = target.protocol === 'https:';
    const upstream = (secure ? forwardSecurely : forward)(target, {
      method: entry.method,
      headers: { ...incoming.headers, host: target.host },
      ...(secure ? { agent } : {}),
    });
    const fail = () => incoming.socket.resetAndDestroy();
    upstream.on('error', fail);
    upstream.on('response', (answer) => {
      entry.status = answer.statusCode ?? 0;
      if (altered.loseAnswer) return fail();
      if (entry.path.includes('watch=true')) watches.add(incoming.socket);
      outgoing.writeHead(entry.status, answer.headers);
      outgoing.flushHeaders();
      answer.on('error', fail);
      answer.on('end', () => {
        watches.delete(incoming.socket);
        entry.endedAs = ++ends;
      });
      // An open watch is asked again at each piece, so that it can be cut after it has lasted for a while.
      answer.on('data', (piece: Buffer) => {
        const cut = watches.has(incoming.socket) ? alterations.of(entry.method, entry.path).cut : altered.cut;
        if (!cut) return void outgoing.write(piece);
        outgoing.write(piece.subarray(0, piece.length >> 1), fail);
      });
      answer.on('end', () => outgoing.end());
    });
    outgoing.on('close', () => upstream.destroy());
    incoming.on('data', (chunk: Buffer) => {
      entry.body += chunk.toString('utf8');
    });
    incoming.pipe(upstream);
  }

  const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void handle(incoming, outgoing);
  const secure = pair && createSecureServer({ cert: pair.certificate, key: pair.key }, answer);
  const server = secure ?? createServer(answer);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      watches.delete(socket);
      sockets.delete(socket);
    });
  });
  server.keepAliveTimeout = 120_000;
  const port = await listen(server, '127.0.0.1:0');
  const resetAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };

  return {
    host: `127.0.0.1:${port}`,
    kubeconfig(path) {
      // Kubernetes' own client refuses plain HTTP without the second.
      const through = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
      return changeKubeconfig(path, { cluster: () => through }, path.replace(/\.kubeconfig$/, `-${port}.kubeconfig`));
    },
    requests: () => entries.map((entry) => ({ ...entry })),
    writes: () =>
      entries.filter((entry) => isWrite(entry) && !isLease(entry) && !isStatus(entry)).map((entry) => ({ ...entry })),
    leaseWrites: () => entries.filter((entry) => isWrite(entry) && isLease(entry)).map((entry) => ({ ...entry })),
    alter: alterations.add,
    hold(matches) {
      const hold: Hold = { matches, waiting: [] };
      holds.push(hold);
      return {
        held: () => hold.waiting.length,
        release() {
          holds = holds.filter((other) => other !== hold);
          for (const go of hold.waiting.splice(0)) go();
        },
      };
    },
    resetWatches() {
      const count = watches.size;
      for (const socket of watches) socket.resetAndDestroy();
      return count;
    },
    resetAll,
    renew({ certificate, key }) {
      secure?.setSecureContext({ cert: certificate, key });
      resetAll();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}
