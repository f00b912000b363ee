import { channel } from 'node:diagnostics_channel';
import { createConnection, createServer, type Server, Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { waitFor } from '../../../hack/cluster/wait.ts';
import { createConnector } from '../../../src/kit/network/connector.ts';
import { listen } from '../../../src/kit/network/listen.ts';

const SOCKETS = channel('net.client.socket');

/** An address of the documentation (RFC 5737), where nothing answers. */
const NOWHERE = '192.0.2.1';

describe('connections that end with their signal', () => {
  let server: Server;
  let port: number;
  let ending: AbortController;
  before(async () => {
    server = createServer((socket) => void socket.end());
    port = await listen(server, '127.0.0.1:0');
  });
  after(() => server.close());
  beforeEach(() => {
    ending = new AbortController();
  });

  const connect = (hostname: string, target: number) =>
    new Promise<Error | Socket>((resolve) =>
      createConnector({ timeout: 60_000 }, ending.signal)(
        { hostname, protocol: 'http:', port: String(target) },
        (error, socket) => resolve(error ?? socket ?? new Error('no socket')),
      ),
    );

  it('are not kept in memory once they are closed', async () => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('globalThis.gc');
    const made: WeakRef<Socket>[] = [];
    const see = (message: unknown) => {
      const socket: unknown = typeof message === 'object' && message !== null && 'socket' in message && message.socket;
      if (socket instanceof Socket) made.push(new WeakRef(socket));
    };
    SOCKETS.subscribe(see);
    for (let number = 0; number < 20; number++) {
      const socket = await connect('127.0.0.1', port);
      if (socket instanceof Error) throw socket;
      await new Promise((resolve) => socket.resume().once('close', resolve));
    }
    SOCKETS.unsubscribe(see);
    expect(made.length).to.be.at.least(20);
    await waitFor('closed sockets to be collected', async () => {
      if (typeof collect === 'function') collect();
      return made.filter((socket) => socket.deref() !== undefined).length <= 2;
    });
    expect(ending.signal.aborted).to.equal(false);
  });

  it('fail at once if the signal aborts before they are made', async () => {
    const connecting = connect(NOWHERE, 9);
    ending.abort();
    expect(await connecting)
      .to.be.an('error')
      .with.property('message', 'ended');
    expect(await connect(NOWHERE, 9)).to.be.an('error');
  });

  it('end the connection to a proxy through which they would be made', async () => {
    const httpSocket = createConnection({ host: '127.0.0.1', port });
    ending.abort();
    const made = await new Promise<Error | undefined>((resolve) =>
      createConnector({}, ending.signal)(
        { hostname: 'registry.invalid', protocol: 'https:', port: '443', httpSocket },
        (...[error]) => resolve(error ?? undefined),
      ),
    );
    expect(made?.message).to.equal('ended');
    expect(httpSocket.destroyed).to.equal(true);
  });
});
