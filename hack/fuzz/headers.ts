import fc from 'fast-check';
import { createProxySelector } from '../../src/kit/network/forward-proxy.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { acceptRealm, parseChallenges } from '../../src/oci/http/token.ts';
import { must, refusing, type Target } from './target.ts';

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,10}$/);
const quoted = fc.string({ maxLength: 40 }).map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`);
const realm = fc.oneof(
  fc.webUrl({ withQueryParameters: true }),
  fc.constantFrom('https://auth.docker.io/token', 'http://169.254.169.254/', 'file:///etc'),
);
const parameter = fc
  .tuple(
    fc.oneof(fc.constantFrom('scope', 'service', 'error', 'Realm'), token),
    fc.constantFrom('=', ' = '),
    fc.oneof(token, quoted),
  )
  .map((parts) => parts.join(''));
const challengeText = fc
  .tuple(
    fc.oneof(fc.constantFrom('Basic', 'Bearer', 'bearer', 'Negotiate'), token),
    realm,
    fc.array(parameter, { maxLength: 4 }),
  )
  .map(([scheme, url, parameters]) => `${scheme} ${[`realm="${url}"`, ...parameters].join(',')}`);

/** `WWW-Authenticate`, and the realms in it. */
export const challenge: Target = {
  name: 'challenge',
  valid: fc.array(challengeText, { minLength: 1, maxLength: 4 }).map((all) => all.join(', ')),
  pieces: [
    'Bearer ',
    'Basic ',
    'realm=',
    'realm="https://a/',
    '"',
    '\\',
    '\\"',
    ',',
    ', ',
    '=',
    '==',
    ' ',
    '\t',
    'a',
    'scope="x"',
    'https://',
    'http://u:p@h/',
    '#f',
  ],
  openings: ['Bearer realm="', 'Bearer ', 'Negotiate '],
  run(text) {
    const challenges = parseChallenges(text);
    must(challenges.length <= 16, 'the challenges are bounded');
    let size = 0;
    for (const { scheme, parameters } of challenges) {
      must(/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(scheme), 'a scheme is a token in lower case');
      size += scheme.length;
      for (const [name, value] of parameters) {
        must(/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name), 'a name is a token in lower case');
        size += name.length + value.length;
      }
    }
    must(size <= 8192, 'nothing is made of more than 8 KiB');
    const realms = [text, ...challenges.flatMap(({ parameters }) => parameters.get('realm') ?? [])];
    for (const insecure of [false, true]) for (const each of realms) checkRealm(each, insecure);
    return challenges.length > 0;
  },
};

function checkRealm(text: string, insecure: boolean): void {
  const url = refusing([ImageError], () =>
    acceptRealm(text, { host: 'r.example.com:5000', hostname: 'r.example.com', insecure }),
  );
  if (url === undefined) return;
  must(
    url.protocol === 'https:' || (insecure && url.protocol === 'http:'),
    'a realm is https, or http where that is allowed',
  );
  must(url.username === '' && url.password === '' && url.hash === '', 'a realm holds no user information');
  must(url.hostname !== '', 'a realm has a host');
}

const URLS = [
  'https://r.example.com/v2/',
  'http://r.example.com:5000/',
  'https://127.0.0.1/',
  'https://[2001:db8::1]:8443/',
].map((text) => new URL(text));
const exemption = fc.oneof(
  fc.domain(),
  fc.domain().map((text) => `.${text}`),
  fc.tuple(fc.ipV4(), fc.nat(32)).map((parts) => parts.join('/')),
  fc.tuple(fc.ipV6(), fc.nat(128)).map((parts) => parts.join('/')),
  fc.ipV6().map((text) => `[${text}]:443`),
  fc.constantFrom('*', '*.example.com', 'r.example.com:443', 'localhost'),
);

/** `NO_PROXY`, and the proxy itself. */
export const proxy: Target = {
  name: 'no-proxy',
  valid: fc.array(exemption, { minLength: 1, maxLength: 6 }).map((all) => all.join(',')),
  pieces: [
    ',',
    ' ',
    ...'* . .example.com r.example.com 10.0.0.0/8 ::/0 [ ] [::1] :443 : / /33 ::ffff:1.2.3.4 http:// u:p@ %'.split(' '),
  ],
  openings: ['r', '[', ':'],
  run(text) {
    const select = createProxySelector({ HTTPS_PROXY: 'http://u:p@proxy.example.com:3128', NO_PROXY: text });
    const chosen = URLS.map((url) => select?.(url));
    must(
      chosen.every((each) => each === undefined || each.origin === 'http://proxy.example.com:3128'),
      'the proxy is the one that is named',
    );
    const named = refusing([Error], () => createProxySelector({ https_proxy: text }));
    for (const url of named === undefined ? [] : URLS) {
      const origin = named?.(url)?.origin;
      must(origin === undefined || /^https?:\/\/[^@/\s]+$/.test(origin), 'the origin of a proxy holds no login');
    }
    return chosen.includes(undefined);
  },
};
