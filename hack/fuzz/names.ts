import fc from 'fast-check';
import { matchCredentials } from '../../src/oci/credentials/docker.ts';
import { parseEndpointAddress } from '../../src/oci/endpoints/endpoint.ts';
import { parseEndpoint } from '../../src/oci/endpoints/mirrors.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { parseReference } from '../../src/oci/reference.ts';
import { must, refusing, type Target } from './target.ts';

const hex = (length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
const digest = fc.oneof(
  hex(64).map((text) => `sha256:${text}`),
  hex(128).map((text) => `sha512:${text}`),
);
const label = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,8}[a-z0-9])?$/);
const port = fc.integer({ min: 1, max: 65_535 }).map((number) => `:${number}`);
const host = fc
  .tuple(
    fc.oneof(
      fc.constantFrom('docker.io', 'index.docker.io', 'registry-1.docker.io', 'localhost', 'ghcr.io'),
      fc.tuple(label, label).map((labels) => labels.join('.')),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    ),
    fc.oneof(fc.constant(''), port),
  )
  .map((parts) => parts.join(''));
const component = fc.stringMatching(/^[a-z0-9]{1,6}(?:(?:\.|__?|-{1,3})[a-z0-9]{1,4}){0,3}$/);
const path = fc.array(component, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));
const optional = (arbitrary: fc.Arbitrary<string>): fc.Arbitrary<string> => fc.oneof(fc.constant(''), arbitrary);

/** Names of images. */
export const reference: Target = {
  name: 'reference',
  valid: fc
    .tuple(
      optional(host.map((text) => `${text}/`)),
      path,
      optional(fc.stringMatching(/^:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/)),
      optional(digest.map((text) => `@${text}`)),
    )
    .map((parts) => parts.join('')),
  pieces: [...'nginx docker.io/ a A 0 / : @ . _ __ - [::1] [ ] sha256:'.split(' '), 'f'.repeat(64), ':80', 'localhost'],
  openings: ['a/', 'r.example.com/a', 'a@sha256:', 'a:'],
  run(text) {
    const read = refusing([ImageError], () => parseReference(text));
    if (read === undefined) return false;
    const { registry, repository, canonical, endpoint, name, tag, digest: of } = read;
    // If only capitals distinguish a one-label host from a repository's first component, the host is in lower case
    // afterwards.
    if (/[.:]|^localhost$/.test(registry)) {
      const again = parseReference(canonical);
      for (const field of ['canonical', 'registry', 'repository', 'tag', 'digest', 'name', 'endpoint'] as const) {
        must(again[field] === read[field], `the canonical name has the same ${field}`);
      }
    }
    must(/^[\x21-\x7e]{1,800}$/.test(canonical), 'the canonical name is printable and bounded');
    must(name === `${registry}/${repository}` && canonical.startsWith(name), 'the name begins the canonical name');
    must(tag !== undefined || of !== undefined, 'there is a tag or a digest');
    const url = new URL(`https://${endpoint}/v2/${repository}/manifests/${of ?? tag}`);
    must(url.pathname === `/v2/${repository}/manifests/${of ?? tag}`, 'the path is asked for as it is');
    must(url.username === '' && url.search === '' && url.hash === '', 'the URL has nothing but a host and a path');
    return true;
  },
};

/** Endpoints of mirrors. */
export const endpoint: Target = {
  name: 'endpoint',
  valid: fc
    .tuple(fc.constantFrom('', 'https://', 'http://', 'HTTPS://'), host, optional(path.map((text) => `/${text}`)))
    .map((parts) => parts.join('')),
  pieces: 'https:// http: file:// / // /v2 . .. : @ ? # [::1] a mirror.example.com 127.1 - %2e'.split(' '),
  openings: ['a/', 'https://', 'http://a.example.com/'],
  run(text) {
    const read = refusing([Error], () => parseEndpointAddress(text));
    refusing([Error], () => parseEndpoint(text));
    if (read === undefined) return false;
    const base = `${read.scheme}://${read.host}${read.path}`;
    const url = new URL(base);
    must(url.pathname === (read.path === '' ? '/' : read.path), 'the path is asked for as it is');
    must(url.protocol === `${read.scheme}:`, 'the scheme is asked for as it is');
    must(url.username === '' && url.search === '' && url.hash === '', 'the URL has nothing but a host and a path');
    const again = parseEndpointAddress(base);
    must(JSON.stringify(again) === JSON.stringify(read), 'the endpoint reads the same again');
    return true;
  },
};

const glob = fc.stringMatching(/^(?:[a-z*?]|\[[a-z]-[a-z]\]){1,6}$/);
const prefix = fc.constantFrom('', 'https://', 'http://', 'user@');
/** A pattern that is likely to match an image: its own host, with wildcards in it, and a part of its path. */
const pattern = fc.tuple(
  prefix,
  fc.nat(3),
  glob,
  fc.constantFrom('', '/', '/v1/', '/v2/', '/v2', 'team'),
  fc.nat(20),
  host,
);

/** Patterns of credentials: the first line is the name of an image, every other line a pattern. */
export const match: Target = {
  name: 'match',
  valid: fc.tuple(host, path, fc.array(pattern, { maxLength: 8 })).map(([registry, repository, patterns]) => {
    const lines = patterns.map(([scheme, kind, wildcard, version, length, other]) => {
      const own =
        kind === 0
          ? other
          : kind === 1
            ? registry.replace(/^[a-z0-9-]+/, wildcard)
            : kind === 2
              ? registry.replace(/[a-z]/, '?')
              : registry;
      return `${scheme}${own}${version}${`/${repository}`.slice(0, length)}`;
    });
    return [`${registry}/${repository}`, ...lines].join('\n');
  }),
  pieces: ['\n', ...'docker.io index.docker.io https:// * ? [a-z] [ ] ^ - . / /v1/ : :443 @ # a % *a'.split(' ')],
  openings: ['a.example.com/x\n', `${'a'.repeat(60)}.example.com/x\n*`, `[::1]/x\n`],
  run(text) {
    const [name = '', ...patterns] = text.split('\n');
    const entries = patterns.map((each, index) => ({ pattern: each, index }));
    const found = matchCredentials(entries, name);
    must(
      found.every((entry) => entries[entry.index] === entry),
      'only what was given matches',
    );
    must(new Set(found).size === found.length, 'nothing matches twice');
    const alone = entries.filter((entry) => matchCredentials([entry], name).length > 0);
    must(
      found.every((entry) => alone.includes(entry)),
      'what matches among others matches alone',
    );
    must(patterns.length === 0 || found.length > 0 === alone.length > 0, 'something matches where one of them does');
    return found.length > 0;
  },
};
