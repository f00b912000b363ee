/** Authenticated requests to one repository of one registry (distribution-spec, "Authentication"). */
import { Agent, type Dispatcher, request } from 'undici';

export type Credentials = { readonly username: string; readonly password: string };

/** Where to push to. `registry` is host[:port]. */
export type Target = {
  readonly registry: string;
  readonly repository: string;
  readonly credentials?: Credentials;
  /** Plain http. */
  readonly insecure?: boolean;
};

export type Answer = { readonly status: number; readonly location: string | undefined; readonly text: string };

export type Session = {
  /** `path` is relative to `/v2/<repository>/`, or absolute as a `Location` is. */
  send(method: Dispatcher.HttpMethod, path: string, body?: Sent): Promise<Answer>;
  close(): Promise<void>;
};

export type Sent = { readonly bytes: Buffer; readonly mediaType: string };

const TIMEOUT_MS = 30_000;
const USER_AGENT = 'archaware-testimg';

/** Opens a session; nothing is sent until `send`. It authenticates when it is first asked to, and again when a token has expired. */
export function openSession(target: Target): Session {
  // The name that people use for Docker Hub is not the host that speaks the API.
  const host = target.registry === 'docker.io' ? 'registry-1.docker.io' : target.registry;
  const origin = `${target.insecure === true ? 'http' : 'https'}://${host}`;
  const base = `${origin}/v2/${target.repository}/`;
  const agent = new Agent({ connect: { timeout: TIMEOUT_MS } });
  let authorization: string | undefined;

  async function once(method: Dispatcher.HttpMethod, url: URL, body: Sent | undefined) {
    const response = await request(url, {
      method,
      dispatcher: agent,
      headers: {
        'user-agent': USER_AGENT,
        // An upload may be sent to another host (a storage): what authenticates us here is not for that one.
        ...(authorization !== undefined && url.origin === origin ? { authorization } : {}),
        ...(body ? { 'content-type': body.mediaType } : {}),
      },
      body: body?.bytes ?? null,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { response, text: await response.body.text() };
  }

  async function send(method: Dispatcher.HttpMethod, path: string, body?: Sent): Promise<Answer> {
    const url = new URL(path, base);
    let { response, text } = await once(method, url, body);
    if (response.statusCode === 401 && url.origin === origin) {
      authorization = await authenticate(first(response.headers['www-authenticate']) ?? '', target, agent);
      ({ response, text } = await once(method, url, body));
    }
    return { status: response.statusCode, location: first(response.headers.location), text };
  }

  return { send, close: () => agent.close() };
}

/** The `Authorization` that answers a challenge. Throws if there is none. */
async function authenticate(challenge: string, target: Target, dispatcher: Dispatcher): Promise<string> {
  const { credentials, registry, repository } = target;
  const basic =
    credentials && `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
  if (/^basic\b/i.test(challenge)) {
    if (basic === undefined) throw new Error(`${registry} asks for a name and a password, and the authfile has none`);
    return basic;
  }
  const realm = parameter(challenge, 'realm');
  if (!/^bearer\b/i.test(challenge) || realm === undefined) {
    throw new Error(`${registry} answered 401 without a challenge that is understood`);
  }
  const url = new URL(realm);
  if (url.protocol !== 'https:' && target.insecure !== true) {
    throw new Error(`${registry} names a token service without TLS (${url.host}); nothing was sent to it`);
  }
  const service = parameter(challenge, 'service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${repository}:pull,push`);
  const response = await request(url, {
    dispatcher,
    headers: { 'user-agent': USER_AGENT, ...(basic === undefined ? {} : { authorization: basic }) },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.body.text();
  if (response.statusCode !== 200) {
    throw new Error(
      `the token service of ${registry} answered ${response.statusCode}: name and password are not accepted`,
    );
  }
  const token = /"(?:access_)?token"\s*:\s*"([^"]+)"/.exec(text)?.[1];
  if (token === undefined) throw new Error(`the token service of ${registry} answered without a token`);
  return `Bearer ${token}`;
}

function parameter(challenge: string, name: string): string | undefined {
  return new RegExp(`${name}="([^"]*)"`, 'i').exec(challenge)?.[1];
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
