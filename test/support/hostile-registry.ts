/** A TCP server that says whatever a test makes it say, byte for byte, and remembers all that it was told. */
import { createServer, type Socket } from 'node:net';
import { listen } from '../../src/kit/network/listen.ts';

/** The head of one request, as it came. */
export type Asked = {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  /** Names in lower case; of a repeated one the last. */
  readonly headers: ReadonlyMap<string, string>;
  /** Everything up to the empty line, and a body where there was one. */
  readonly text: string;
};

/** Answers a request by writing to its connection, or does not. */
export type Speak = (socket: Socket, asked: Asked) => void;

export type HostileServer = {
  readonly port: number;
  readonly asked: Asked[];
  /** How many connections were ever made to it. */
  connections(): number;
  /** Answers a path, whatever its query; `*` answers all others. */
  on(path: string, speak: Speak): void;
  /** Forgets the answers that were set. */
  behave(): void;
  stop(): Promise<void>;
};

/** Starts one on 127.0.0.1. It answers 404 where no answer was set. */
export async function startHostileServer(): Promise<HostileServer> {
  const answers = new Map<string, Speak>();
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  const accept = (socket: Socket): void => {
    // Clients go away in the middle of things; that is what they are here for.
    socket.on('error', () => undefined);
    let pending = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      // A TLS handshake, which is how an insecure registry is tried first: says what a server for plain http says.
      if (pending === '' && text.startsWith('\x16')) return void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      pending += text;
      for (let request = read(pending); request !== undefined; request = read(pending)) {
        pending = pending.slice(request.text.length);
        asked.push(request);
        const path = request.target.split('?')[0] ?? '';
        (answers.get(path) ?? answers.get('*') ?? says(404))(socket, request);
      }
    });
  };
  const server = createServer(accept);
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  const port = await listen(server, '127.0.0.1:0');
  return {
    port,
    asked,
    connections: () => connections,
    on: (path, speak) => void answers.set(path, speak),
    behave: () => answers.clear(),
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The first request of a text, with the body that its Content-Length names; undefined while it is not complete. */
function read(text: string): Asked | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const [method = '', target = ''] = first.split(' ');
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = end + 4 + Number(headers.get('content-length') ?? 0);
  return text.length < length ? undefined : { method, target, headers, text: text.slice(0, length) };
}

/** Header lines, in order; names may repeat, values may hold anything. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** A head with exactly these lines and nothing of ours. */
export function head(status: number | string, headers: HeaderLines): string {
  return `HTTP/1.1 ${status} Said\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** A proper response, with the length of its body. */
export function response(status: number, headers: HeaderLines = [], body: string | Uint8Array = ''): Buffer {
  const bytes = Buffer.from(body);
  const lines: HeaderLines = [...headers, ['Content-Length', String(bytes.length)]];
  return Buffer.concat([Buffer.from(head(status, lines), 'latin1'), bytes]);
}

/** Sends a proper response; to HEAD without its body. */
export function says(status: number, headers: HeaderLines = [], body: string | Uint8Array = ''): Speak {
  const whole = response(status, headers, body);
  return (socket, { method }) => {
    socket.write(method === 'HEAD' ? whole.subarray(0, whole.length - Buffer.byteLength(body)) : whole);
  };
}

/** Sends exactly these bytes, and leaves the connection open. */
export function sends(...parts: readonly (string | Uint8Array)[]): Speak {
  const bytes = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
  return (socket) => void socket.write(bytes);
}

/** Sends exactly these bytes, and hangs up. */
export function sendsAndCloses(...parts: readonly (string | Uint8Array)[]): Speak {
  const send = sends(...parts);
  return (socket, asked) => {
    send(socket, asked);
    socket.end();
  };
}

/** Sends a beginning, and then a little more every few milliseconds for as long as somebody listens. */
export function drips(beginning: string, drop: string): Speak {
  return (socket) => {
    socket.write(Buffer.from(beginning, 'latin1'));
    const timer = setInterval(() => socket.write(Buffer.from(drop, 'latin1')), 10);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Sends a beginning, and then more as fast as it is taken. */
export function floods(beginning: string, wave: string): Speak {
  const bytes = Buffer.from(wave.repeat(Math.ceil(65_536 / wave.length)), 'latin1');
  return (socket) => {
    socket.write(Buffer.from(beginning, 'latin1'));
    const more = (): void => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on('drain', more);
    more();
  };
}

/** Never says a word. */
export const silent: Speak = () => undefined;
