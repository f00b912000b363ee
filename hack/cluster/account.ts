/** The account that the registry and the token server accept. For tests on the loopback address only. */
export const account = {
  username: 'test-user',
  password: 'correct horse',
  /** The token that `docker login` would keep instead of the password; only the token server accepts it. */
  identityToken: 'a-refresh-token-of-the-tests',
} as const;

/**
 * The account's line of an htpasswd file. The registry accepts only bcrypt, which Node.js does not have, so the hash is
 * fixed.
 */
export const htpasswd = `${account.username}:$2a$04$vR00o3fLtrSyeXCqB3LIfefH94iS1IDdDNG3KMK82TmzDdpBkr2Xe\n`;
