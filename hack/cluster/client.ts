import { Agent, request as send } from 'undici';
import { isObject, type JsonObject, objectAt } from '../../src/kit/json.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed JSON; the text if it is not JSON. */
  readonly body: unknown;
}

/** Sends one request to the API server. A status of 400 and more is an answer, not an error. */
export type Request = (method: Method, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

/** One line of a watch. */
export interface WatchEvent {
  readonly type: string;
  readonly object: JsonObject;
}

export interface Client {
  readonly request: Request;
  /** The events of a watch until the server ends it; `return` on the iterator ends it from the client's side. */
  watch(path: string): AsyncGenerator<WatchEvent, void, undefined>;
  close(): Promise<void>;
}

/** Somebody whom a client pretends to be (Kubernetes' impersonation). */
export type Impersonated = { readonly user: string; readonly groups: readonly string[] };

/**
 * Creates a keep-alive client with the token's rights, for tests that set things up and look at them; `as`: with those of somebody else.
 * Without an authority the server speaks http. A text as the body is sent unchanged.
 */
export function createClient(
  /** A function where a test may start the server again elsewhere. */
  server: string | (() => string),
  token: string,
  authority?: string,
  as?: Impersonated,
): Client {
  const dispatcher = new Agent({ connections: 64, ...(authority === undefined ? {} : { connect: { ca: authority } }) });
  const base = () => (typeof server === 'string' ? server : server());
  const own = { authorization: `Bearer ${token}`, accept: 'application/json', 'user-agent': 'test' };
  const pretended = as && { 'impersonate-user': as.user, 'impersonate-group': [...as.groups] };
  return {
    async request(method, path, body, contentType = defaultContentType(method, body)) {
      const headers = { ...own, 'content-type': contentType, ...pretended };
      const payload = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await send(`${base()}${path}`, { method, headers, body: payload, dispatcher });
      return { status: answer.statusCode, headers: answer.headers, body: parse(await answer.body.text()) };
    },
    async *watch(path) {
      const headers = { ...own, ...pretended };
      const { body } = await send(`${base()}${path}`, { headers, dispatcher, bodyTimeout: 20_000 });
      body.on('error', () => {});
      let buffered = '';
      for await (const chunk of body) {
        buffered += String(chunk);
        const lines = buffered.split('\n');
        buffered = lines.pop() ?? '';
        for (const line of lines) {
          const event: unknown = JSON.parse(line);
          if (isObject(event)) yield { type: String(event.type), object: objectAt(event, 'object') };
        }
      }
    },
    close: () => dispatcher.destroy(),
  };
}

/** A list of operations, or a text, is a JSON Patch (RFC 6902), an object a merge patch (RFC 7396). */
function defaultContentType(method: Method, body: unknown): string {
  if (method !== 'PATCH') return 'application/json';
  return Array.isArray(body) || typeof body === 'string'
    ? 'application/json-patch+json'
    : 'application/merge-patch+json';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns the body of a success; throws for every other answer, with the server's own message. */
export function expectSuccess(what: string, { status, body }: Answer): unknown {
  if (status >= 300) throw new Error(`${what}: ${status} ${JSON.stringify(body)}`);
  return body;
}
