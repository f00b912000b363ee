/** Who may pull and push at a test registry: nobody asked, Basic, or Bearer with a token service of its own. */

export type AuthMode = 'none' | 'basic' | 'bearer';

export type AuthOptions = {
  readonly mode: AuthMode;
  /** Passwords by name. */
  readonly users: Readonly<Record<string, string>>;
  /** Users by identity token, as `docker login` stores them; they are redeemed by POST at the token service. */
  readonly identityTokens: Readonly<Record<string, string>>;
  /** What `expires_in` says, and how long a token is good for. */
  readonly tokenLifetimeSeconds: number;
  readonly now: () => number;
};

type Action = 'pull' | 'push';

/** What a request gets that is not let in. `challenge` is what follows `Bearer realm=…,service=…`, or Basic. */
export type Denial = { readonly status: 401 | 403; readonly challenge?: string };

export type TokenAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

type Token = { readonly grants: ReadonlySet<string>; readonly expires: number };

export type Auth = ReturnType<typeof createAuth>;

const SERVICE = 'test-registry';

/** Rules and tokens of one registry. */
export function createAuth({ mode, users, identityTokens, tokenLifetimeSeconds, now }: AuthOptions) {
  // undefined: public; otherwise the names that may pull.
  const readers = new Map<string, readonly string[] | undefined>();
  const tokens = new Map<string, Token>();
  let issued = 0;

  /** `undefined` is nobody, `false` a name or password that is wrong. */
  function userOf(authorization: string | undefined): string | undefined | false {
    const encoded = /^basic (.+)$/i.exec(authorization ?? '')?.[1];
    if (encoded === undefined) return undefined;
    const [name = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
    return Object.hasOwn(users, name) && users[name] === rest.join(':') ? name : false;
  }

  function allows(user: string | undefined, repository: string, action: Action): boolean {
    if (action === 'push') return user !== undefined;
    // A registry with Basic (distribution with htpasswd) has no public repositories unless a test makes one.
    const names = readers.has(repository) ? readers.get(repository) : mode === 'basic' ? Object.keys(users) : undefined;
    return names === undefined || (user !== undefined && names.includes(user));
  }

  function issue(user: string | undefined, scopes: readonly string[]): TokenAnswer {
    const grants = new Set<string>();
    for (const scope of scopes) {
      const [, repository = '', actions = ''] = /^repository:(.+):([a-z,*]+)$/.exec(scope) ?? [];
      for (const action of ['pull', 'push'] as const) {
        if (actions.split(',').includes(action) && allows(user, repository, action))
          grants.add(`${repository}:${action}`);
      }
    }
    issued += 1;
    const token = `test-token-${issued}`;
    tokens.set(token, { grants, expires: now() + tokenLifetimeSeconds * 1000 });
    return { status: 200, body: { token, access_token: token, expires_in: tokenLifetimeSeconds } };
  }

  function challenge(repository: string | undefined, action: Action, error?: string): string {
    const scope =
      repository === undefined ? '' : `,scope="repository:${repository}:${action === 'push' ? 'pull,push' : 'pull'}"`;
    return `service="${SERVICE}"${scope}${error === undefined ? '' : `,error="${error}"`}`;
  }

  return {
    /** `names` absent: every user may pull. Throws without authentication: nothing would be private. */
    makePrivate(repository: string, names?: readonly string[]): void {
      if (mode === 'none') throw new Error('a registry without authentication has no private repositories');
      readers.set(repository, names ?? Object.keys(users));
    },

    makePublic(repository: string): void {
      readers.set(repository, undefined);
    },

    /** Makes every token that was issued invalid, as a restart of the token service does. */
    revokeTokens(): void {
      tokens.clear();
    },

    /** Why a request is not let in, or undefined. `repository` is undefined for `/v2/`. */
    judge(authorization: string | undefined, repository: string | undefined, action: Action): Denial | undefined {
      if (mode === 'none') return undefined;
      if (mode === 'basic') {
        const user = userOf(authorization);
        if (user === false) return { status: 401, challenge: '' };
        if (repository === undefined ? user !== undefined : allows(user, repository, action)) return undefined;
        return user === undefined ? { status: 401, challenge: '' } : { status: 403 };
      }
      const name = /^bearer (.+)$/i.exec(authorization ?? '')?.[1];
      if (name === undefined) return { status: 401, challenge: challenge(repository, action) };
      const token = tokens.get(name);
      if (token === undefined || token.expires <= now()) {
        return { status: 401, challenge: challenge(repository, action, 'invalid_token') };
      }
      if (repository === undefined || token.grants.has(`${repository}:${action}`)) return undefined;
      return { status: 401, challenge: challenge(repository, action, 'insufficient_scope') };
    },

    /** `GET /token`: anonymous or Basic. */
    token(authorization: string | undefined, query: URLSearchParams): TokenAnswer {
      const user = userOf(authorization);
      if (user === false) return { status: 401, body: { details: 'incorrect username or password' } };
      return issue(user, query.getAll('scope'));
    },

    /** `POST /token` with `grant_type=refresh_token`; 405 where the registry knows no identity tokens. */
    refresh(form: URLSearchParams): TokenAnswer {
      if (Object.keys(identityTokens).length === 0) return { status: 405, body: {} };
      const user = identityTokens[form.get('refresh_token') ?? ''];
      if (form.get('grant_type') !== 'refresh_token' || user === undefined) return { status: 401, body: {} };
      return issue(user, (form.get('scope') ?? '').split(' '));
    },
  };
}
