/** How an answer of a test registry goes out: as it should, or as the faults want it. */
import type { ServerResponse } from 'node:http';
import { type Fault, faultOf } from './faults.ts';
import type { Refusal } from './store.ts';

export type Reply = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
};

/** A JSON reply. */
export function jsonReply(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(value)),
  };
}

/** A refusal in the form of the distribution specification. */
export function refusalReply(
  { status, code, message }: Refusal,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return jsonReply(status, { errors: [{ code, message }] }, headers);
}

/** What replaces the usual answer, if a fault does. */
export function replyOfFaults(met: readonly Fault[]): Reply | undefined {
  const status = faultOf(met, 'status');
  if (status === undefined) return undefined;
  const code = status.status === 429 ? 'TOOMANYREQUESTS' : 'UNKNOWN';
  const headers = status.retryAfter === undefined ? {} : { 'retry-after': status.retryAfter };
  return refusalReply({ status: status.status, code, message: 'a fault that a test asked for' }, headers);
}

/** Sends a reply with what the faults do to it. A HEAD has the headers of its GET and no body. */
export function sendReply(response: ServerResponse, reply: Reply, isHead: boolean, met: readonly Fault[]): void {
  const headers: Record<string, string> = { ...reply.headers };
  let body = reply.body ?? Buffer.alloc(0);
  if (faultOf(met, 'wrong-digest') && headers['docker-content-digest'] !== undefined) {
    headers['docker-content-digest'] = `sha256:${'0'.repeat(64)}`;
  }
  const wrongType = faultOf(met, 'content-type');
  if (wrongType) headers['content-type'] = wrongType.type;
  if (faultOf(met, 'corrupt') && body.length > 0) body = Buffer.concat([body, Buffer.from(' ')]);
  headers['content-length'] = String(body.length);
  response.writeHead(reply.status, headers);
  if (isHead || body.length === 0) {
    response.end();
  } else if (faultOf(met, 'truncate')) {
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
  } else {
    const drip = faultOf(met, 'drip');
    if (drip) dripBody(response, body, drip.ms);
    else response.end(body);
  }
}

function dripBody(response: ServerResponse, body: Buffer, ms: number): void {
  let sent = 0;
  const timer = setInterval(() => {
    sent += 1;
    if (sent < body.length) response.write(body.subarray(sent - 1, sent));
    else response.end(body.subarray(sent - 1));
  }, ms);
  response.once('close', () => clearInterval(timer));
}
