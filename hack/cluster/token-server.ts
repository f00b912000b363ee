import { sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { account } from './account.ts';
import { generateKey } from './certificates.ts';

export interface TokenServerOptions {
  /** Default false: only `account` gets a token. True: everybody gets one that pulls. */
  readonly anonymousPull?: boolean;
  /** Seconds; default 300. */
  readonly expiresIn?: number;
}

/** Hands out registry tokens as the distribution project's token specification says. */
export interface TokenServer {
  readonly realm: string;
  /** The public key with which the registry verifies, as a JSON Web Key Set. */
  readonly keySet: unknown;
  /** The registry's settings below `auth.token`. */
  registryOptions(keySetFile: string): Record<string, string>;
  /** The path and query of each request, and the user's name if one was given. */
  requests(): { path: string; user: string | undefined; status: number }[];
  stop(): Promise<void>;
}

const issuer = 'archaware-test';
const service = 'archaware-registry';
const keyId = 'test';

export async function startTokenServer(options: TokenServerOptions = {}): Promise<TokenServer> {
  const { publicKey, privateKey } = generateKey();
  const seen: { path: string; user: string | undefined; status: number }[] = [];
  const issue = (claims: object) =>
    jwt(claims, (text) => sign('sha256', text, { key: privateKey, dsaEncoding: 'ieee-p1363' }));
  const server = createServer((request, response) => {
    const { user, password } = basicCredentials(request);
    const known = user === account.username && password === account.password;
    const status = known || (user === undefined && options.anonymousPull) ? 200 : 401;
    const url = new URL(request.url ?? '/', 'http://token');
    seen.push({ path: `${url.pathname}${url.search}`, user, status });
    const expiresIn = options.expiresIn ?? 300;
    if (status !== 200) return answer(response, status, { errors: [{ code: 'UNAUTHORIZED' }] });
    const token = issue(claimsFor(url, user ?? '', expiresIn, known));
    answer(response, status, { token, expires_in: expiresIn, issued_at: new Date().toISOString() });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  const realm = `http://127.0.0.1:${address.port}/token`;
  return {
    realm,
    keySet: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'ES256', use: 'sig' }] },
    registryOptions: (jwks) => ({ realm, service, issuer, jwks }),
    requests: () => [...seen],
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function basicCredentials({ headers }: IncomingMessage): { user?: string; password?: string } {
  const encoded = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (encoded === undefined) return {};
  const [user = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return { user, password: password.join(':') };
}

function claimsFor(url: URL, subject: string, expiresIn: number, mayPush: boolean) {
  const now = Math.floor(Date.now() / 1000);
  const access = url.searchParams
    .getAll('scope')
    .flatMap((scope) => scope.split(' '))
    .flatMap((scope) => grant(scope, mayPush));
  return { iss: issuer, aud: service, sub: subject, nbf: now - 10, iat: now, exp: now + expiresIn, access };
}

/** A scope is `type:name:actions`, and the name may hold colons. */
function grant(scope: string, mayPush: boolean) {
  const match = /^([^:]+):(.+):([^:]*)$/.exec(scope);
  if (!match) return [];
  const [, type, name, wanted = ''] = match;
  return [{ type, name, actions: wanted.split(',').filter((action) => mayPush || action === 'pull') }];
}

function jwt(claims: object, signature: (text: Buffer) => Buffer): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ typ: 'JWT', alg: 'ES256', kid: keyId })}.${encode(claims)}`;
  return `${text}.${signature(Buffer.from(text)).toString('base64url')}`;
}
