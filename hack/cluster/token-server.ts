import { sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { account } from './account.ts';
import { generateKey } from './certificates.ts';

/** Issues registry tokens by the distribution project's token specification, including identity tokens. */
export interface TokenServer {
  readonly realm: string;
  /** The public key with which the registry verifies, as a JSON Web Key Set. */
  readonly keySet: unknown;
  /** The registry's settings below `auth.token`. */
  registryOptions(keySetFile: string): Record<string, string>;
  stop(): Promise<void>;
}

const issuer = 'archaware-test';
const service = 'archaware-registry';
const keyId = 'test';
/** In seconds. */
const EXPIRES_IN = 300;

export async function startTokenServer(): Promise<TokenServer> {
  const { publicKey, privateKey } = generateKey();
  const issue = (claims: object) =>
    jwt(claims, (text) => sign('sha256', text, { key: privateKey, dsaEncoding: 'ieee-p1363' }));
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '/' } = request;
    const form = method === 'POST' ? await formOf(request) : undefined;
    const { user, known } = form === undefined ? byBasic(request) : byIdentityToken(form);
    if (!known) return answer(response, 401, { errors: [{ code: 'UNAUTHORIZED' }] });
    const parameters = form ?? new URL(path, 'http://token').searchParams;
    const token = issue(claimsFor(parameters, user ?? ''));
    // OAuth 2 uses another name for it.
    const named = form === undefined ? { token } : { access_token: token };
    answer(response, 200, { ...named, expires_in: EXPIRES_IN, issued_at: new Date().toISOString() });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a listening socket has no port');
  const realm = `http://127.0.0.1:${address.port}/token`;
  return {
    realm,
    keySet: { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'ES256', use: 'sig' }] },
    registryOptions: (jwks) => ({ realm, service, issuer, jwks }),
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

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

/** The client of a request; the account is the only known one. */
type Asker = { readonly user: string | undefined; readonly known: boolean };

function byBasic({ headers }: IncomingMessage): Asker {
  const encoded = /^Basic (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (encoded === undefined) return { user: undefined, known: false };
  const [user = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return { user, known: user === account.username && password.join(':') === account.password };
}

function byIdentityToken(form: URLSearchParams): Asker {
  const known = form.get('grant_type') === 'refresh_token' && form.get('refresh_token') === account.identityToken;
  return { user: known ? account.username : undefined, known };
}

function claimsFor(parameters: URLSearchParams, subject: string) {
  const now = Math.floor(Date.now() / 1000);
  const access = parameters
    .getAll('scope')
    .flatMap((scope) => scope.split(' '))
    .flatMap(grant);
  return { iss: issuer, aud: service, sub: subject, nbf: now - 10, iat: now, exp: now + EXPIRES_IN, access };
}

/** A scope is `type:name:actions`, and the name may contain colons. */
function grant(scope: string) {
  const match = /^([^:]+):(.+):([^:]*)$/.exec(scope);
  if (!match) return [];
  const [, type, name, wanted = ''] = match;
  return [{ type, name, actions: wanted.split(',') }];
}

function jwt(claims: object, signature: (text: Buffer) => Buffer): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${encode({ typ: 'JWT', alg: 'ES256', kid: keyId })}.${encode(claims)}`;
  return `${text}.${signature(Buffer.from(text)).toString('base64url')}`;
}
