/** The API server's TLS, whose certificate and authority can be replaced while it serves. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { listen } from '../../../src/kit/network/listen.ts';

export type TlsFront = {
  /** https://127.0.0.1:PORT. */
  readonly server: string;
  /** Path of the authorities that clients are to trust, PEM. */
  readonly caFile: string;
  /** A new authority issues the certificate from now on. The file names both, as in a rotation, or the new one alone. */
  rotate(keepOld: boolean): Promise<void>;
  close(): Promise<void>;
};

/** Serves TLS in front of a plain HTTP server, 127.0.0.1:PORT as `host`. */
export async function startTlsFront(host: string): Promise<TlsFront> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-tls-'));
  const caFile = join(directory, 'ca.crt');
  let number = 0;
  const issue = () => {
    const authority = createAuthority(`faults ${++number}`);
    const { certificate: cert, key } = authority.issue('kube-apiserver', ['127.0.0.1']);
    return { authority: authority.certificate, cert, key };
  };
  let { authority, ...pair } = issue();
  await writeFile(caFile, authority);
  const sockets = new Set<Socket>();
  const port = Number(host.split(':')[1]);
  const server = createServer(pair, (socket) => {
    const upstream = connect(port, '127.0.0.1');
    const end = () => {
      socket.destroy();
      upstream.destroy();
    };
    for (const side of [socket, upstream]) side.on('error', end).on('close', end);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.pipe(upstream).pipe(socket);
  });
  server.on('tlsClientError', () => undefined);
  const own = await listen(server, '127.0.0.1:0');
  return {
    server: `https://127.0.0.1:${own}`,
    caFile,
    async rotate(keepOld) {
      const old = authority;
      ({ authority, ...pair } = issue());
      await writeFile(caFile, keepOld ? `${old}${authority}` : authority);
      server.setSecureContext(pair);
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
      await rm(directory, { recursive: true });
    },
  };
}
