/** Who may pull from a test registry: nobody asked, Basic, or Bearer with a token service of its own. */
export type AuthMode = 'none' | 'basic' | 'bearer';

/** What a request gets that is not let in: `challenge` is what follows `Bearer realm=…,service=…`, or Basic. */
export type Denial = { readonly challenge: string };

export type TokenAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

export type Auth = ReturnType<typeof createAuth>;

const SERVICE = 'test-registry';

/** Rules and tokens of one registry. `users`: passwords by name. */
export function createAuth(mode: AuthMode, users: Readonly<Record<string, string>>) {
  const isPrivate = new Set<string>();
  /** The repositories that each token is for. */
  const tokens = new Map<string, ReadonlySet<string>>();

  /** `undefined` is nobody, `false` a name or password that is wrong. */
  function userOf(authorization: string | undefined): string | undefined | false {
    const encoded = /^basic (.+)$/i.exec(authorization ?? '')?.[1];
    if (encoded === undefined) return undefined;
    const [name = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
    return Object.hasOwn(users, name) && users[name] === rest.join(':') ? name : false;
  }

  function challenge(repository: string | undefined, error?: string): Denial {
    const scope = repository === undefined ? '' : `,scope="repository:${repository}:pull"`;
    return { challenge: `service="${SERVICE}"${scope}${error === undefined ? '' : `,error="${error}"`}` };
  }

  return {
    /** Every user may pull, and nobody else. Throws without authentication: nothing would be private. */
    makePrivate(repository: string): void {
      if (mode === 'none') throw new Error('a registry without authentication has no private repositories');
      isPrivate.add(repository);
    },
    /** Why a request is not let in, or undefined. `repository` is undefined for `/v2/`. */
    judge(authorization: string | undefined, repository: string | undefined): Denial | undefined {
      if (mode === 'none') return undefined;
      // Like distribution with htpasswd, which has no public repositories.
      if (mode === 'basic') return userOf(authorization) ? undefined : { challenge: '' };
      const name = /^bearer (.+)$/i.exec(authorization ?? '')?.[1];
      if (name === undefined) return challenge(repository);
      const granted = tokens.get(name);
      if (granted === undefined) return challenge(repository, 'invalid_token');
      return repository === undefined || granted.has(repository)
        ? undefined
        : challenge(repository, 'insufficient_scope');
    },
    /** `GET /token`: anonymous or Basic. */
    token(authorization: string | undefined, query: URLSearchParams): TokenAnswer {
      const user = userOf(authorization);
      if (user === false) return { status: 401, body: { details: 'incorrect username or password' } };
      const asked = query.getAll('scope').flatMap((scope) => /^repository:(.+):pull$/.exec(scope)?.[1] ?? []);
      const token = `test-token-${tokens.size + 1}`;
      tokens.set(token, new Set(asked.filter((repository) => user !== undefined || !isPrivate.has(repository))));
      return { status: 200, body: { token, access_token: token, expires_in: 300 } };
    },
  };
}
