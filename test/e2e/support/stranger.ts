/** What reaches the webhook's port without being the API server. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';

/** The status of an answer to a POST of JSON; undefined where the connection was closed instead. */
export async function post(port: number, path: string, body: string | Buffer): Promise<number | undefined> {
  // A connection of its own, which the answer ends.
  const agent = new Agent({ rejectUnauthorized: false });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers });
  try {
    const answered = once(sent, 'response');
    sent.end(body);
    const [response] = await answered;
    response.resume();
    return response.statusCode;
  } catch {
    return undefined;
  } finally {
    agent.destroy();
  }
}

/** Connections that send this and then nothing. Each is open, or closed again, when it resolves. */
export async function idle(port: number, count: number, text: string): Promise<TLSSocket[]> {
  const open = () =>
    new Promise<TLSSocket>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
        socket.write(text);
        resolve(socket);
      });
      socket.on('error', () => resolve(socket)).on('close', () => resolve(socket));
      socket.resume();
    });
  const sockets: TLSSocket[] = [];
  while (sockets.length < count) sockets.push(...(await Promise.all(Array.from({ length: 50 }, open))));
  return sockets;
}

/** The most memory that a process has held so far, in MiB (`VmHWM`). */
export async function mostMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
}
