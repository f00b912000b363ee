import { Agent, request as send } from 'undici';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Answer {
  readonly status: number;
  /** Parsed JSON; the text if it is not JSON. */
  readonly body: unknown;
}

/** Sends one request to the API server. A status of 400 and more is an answer, not an error. */
export type Request = (method: Method, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

export interface Client {
  readonly request: Request;
  close(): Promise<void>;
}

/** Somebody whom a client pretends to be (Kubernetes' impersonation). */
export type Impersonated = { readonly user: string; readonly groups: readonly string[] };

/** Creates a keep-alive client with the token's rights, for tests that set things up and look at them. `as`: with those of somebody else. */
export function createClient(server: string, token: string, authority: string, as?: Impersonated): Client {
  const dispatcher = new Agent({ connect: { ca: authority }, connections: 64 });
  return {
    async request(method, path, body, contentType = defaultContentType(method, body)) {
      const pretended = as && { 'impersonate-user': as.user, 'impersonate-group': [...as.groups] };
      const own = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': contentType };
      const headers = { ...own, ...pretended };
      const payload = body === undefined ? null : JSON.stringify(body);
      const answer = await send(`${server}${path}`, { method, headers, body: payload, dispatcher });
      return { status: answer.statusCode, body: parse(await answer.body.text()) };
    },
    close: () => dispatcher.destroy(),
  };
}

/** A list of operations is a JSON Patch (RFC 6902), an object a merge patch (RFC 7396). */
function defaultContentType(method: Method, body: unknown): string {
  if (method !== 'PATCH') return 'application/json';
  return Array.isArray(body) ? 'application/json-patch+json' : 'application/merge-patch+json';
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
