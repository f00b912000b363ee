/** The account that the registry and the token server let in. For tests on the loopback address only. */
export const account = {
  username: 'test-user',
  password: 'correct horse',
  /** What `docker login` would keep in place of the password; the token server alone takes it. */
  identityToken: 'a-refresh-token-of-the-tests',
} as const;

/** Its line of an htpasswd file. The registry takes bcrypt only, which Node.js does not have, so the hash is fixed. */
export const htpasswd = `${account.username}:$2a$04$vR00o3fLtrSyeXCqB3LIfefH94iS1IDdDNG3KMK82TmzDdpBkr2Xe\n`;
