import { expect } from 'chai';
import type { HostEntry, HostsConfig } from '../../../src/oci/endpoints/hosts-toml.ts';
import { createRoutes, type Mirrors, parseEndpoint, type RouteOptions } from '../../../src/oci/endpoints/mirrors.ts';
import { insecureTrust, type Trust } from '../../../src/oci/http/trust.ts';
import { parseReference } from '../../../src/oci/reference.ts';
import { lines } from './lines.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

type Mirror = Mirrors[string];

function mirror(endpoints: readonly string[], other: Partial<Mirror> = {}): Mirror {
  return { endpoints, fallback: true, credentials: 'mirror', ...other };
}

function endpointsOf(image: string, options: Partial<RouteOptions> = {}) {
  const routes = createRoutes({ mirrors: {}, insecure: [], hosts: () => undefined, ...options });
  return routes.endpointsOf(parseReference(image));
}

/** These mirrors of a registry before it; `only`: without it. */
const ahead = (registry: string, ...endpoints: string[]) => ({ mirrors: { [registry]: mirror(endpoints) } });
const only = (registry: string, ...endpoints: string[]) => ({
  mirrors: { [registry]: mirror(endpoints, { fallback: false }) },
});

const HUB = 'registry-1.docker.io/v2 library/nginx as docker.io/library/nginx';

describe('the endpoints of an image', () => {
  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string][] = [
    ['Docker Hub, where nothing is configured', 'nginx', {}, HUB],
    ['another registry, where nothing is configured', 'quay.io/ns/x:1', {}, 'quay.io/v2 ns/x'],
    ['a registry at a port', 'a.b:5000/x', {}, 'a.b:5000/v2 x'],
    ['an insecure registry', 'a.b:5000/x', { insecure: ['A.b:5000'] }, 'a.b:5000/v2 x configured insecure'],
    ['an insecure registry is so at its port only', 'a.b/x', { insecure: ['a.b:5000'] }, 'a.b/v2 x'],
    ['IPv6', '[2001:db8::1]:5/x', { insecure: ['[2001:db8::1]:5'] }, '[2001:db8::1]:5/v2 x configured insecure'],
    ['a mirror, then the source', 'nginx', ahead('docker.io', 'm.b'), `~m.b/v2 library/nginx ?ns=docker.io | ${HUB}`],
    [
      'mirrors in their order, with prefixes and ports',
      'nginx',
      ahead('docker.io', 'b.c:8443/hub', 'https://a.c/proxy/cache/'),
      `~b.c:8443/v2 hub/library/nginx ?ns=docker.io | ~a.c/v2 proxy/cache/library/nginx ?ns=docker.io | ${HUB}`,
    ],
    ['a mirror and never the source', 'nginx', only('docker.io', 'm.b'), '~m.b/v2 library/nginx ?ns=docker.io'],
    [
      "a mirror with the source's credentials",
      'quay.io/ns/x',
      { mirrors: { 'quay.io': mirror(['m.b/q'], { fallback: false, credentials: 'source' }) } },
      '~m.b/v2 q/ns/x ?ns=quay.io as quay.io/ns/x',
    ],
    ['a mirror in plain http', 'quay.io/x', only('quay.io', 'http://m.b:5/q'), '~http://m.b:5/v2 q/x ?ns=quay.io'],
    [
      'an insecure mirror beside one that is not',
      'quay.io/x',
      { insecure: ['m.local:5000'], ...ahead('quay.io', 'm.local:5000', 'https://m.local:5001') },
      '~m.local:5000/v2 x ?ns=quay.io insecure | ~m.local:5001/v2 x ?ns=quay.io | quay.io/v2 x',
    ],
    [
      'plain http that is insecure',
      'q.io/x',
      { insecure: ['m.b:5'], ...only('q.io', 'http://m.b:5') },
      '~http://m.b:5/v2 x ?ns=q.io',
    ],
    [
      'a mirror at an IPv6 address',
      'a.b:5/x',
      ahead('a.b:5', 'http://[fd00::5]:5'),
      '~http://[fd00::5]:5/v2 x ?ns=a.b%3A5 | a.b:5/v2 x',
    ],
    ['an IPv6 registry with a mirror', '[::1]:5/x', only('[::1]:5', 'm.b'), '~m.b/v2 x ?ns=%5B%3A%3A1%5D%3A5'],
    ["the node's localhost", 'localhost:3/x', only('localhost:3', 'http://r.b'), '~http://r.b/v2 x ?ns=localhost%3A3'],
    ['mirrors of others', 'q.io/x', { mirrors: { 'a.io': mirror(['m.b']), 'q.io:443': mirror(['n.b']) } }, 'q.io/v2 x'],
    ['a digest as well as a tag', `quay.io/x@${DIGEST}`, only('quay.io', 'm.b/q'), '~m.b/v2 q/x ?ns=quay.io'],
    [
      'the source named among its mirrors, once and in its place',
      'nginx',
      ahead('docker.io', 'registry-1.docker.io', 'm.b', 'docker.io'),
      `${HUB} configured | ~m.b/v2 library/nginx ?ns=docker.io`,
    ],
    ['the source over plain http, once', 'a.b:5/x', ahead('a.b:5', 'http://a.b:5'), 'http://a.b:5/v2 x configured'],
    ["a prefix of the source's host is a mirror", 'q.io/x', ahead('q.io', 'q.io/p'), '~q.io/v2 p/x | q.io/v2 x'],
    ['the same mirror twice', 'quay.io/x', only('quay.io', 'm.b', 'https://M.b/'), '~m.b/v2 x ?ns=quay.io'],
    ['no mirror but the source', 'quay.io/x', ahead('quay.io'), 'quay.io/v2 x'],
  ];
  for (const [what, image, options, expected] of rows) {
    it(what, () => expect(lines(endpointsOf(image, options))).to.equal(expected));
  }

  for (const key of ['docker.io', 'index.docker.io', 'registry-1.docker.io', 'Docker.IO']) {
    for (const image of ['nginx', 'index.docker.io/library/nginx', 'registry-1.docker.io/library/nginx']) {
      it(`${key} stands for Docker Hub, also for ${image}`, () => {
        const [first, second] = endpointsOf(image, { mirrors: { [key]: mirror(['m.b']) } });
        expect(first).to.include({ name: 'm.b', isSource: false });
        expect(second).to.include({ name: 'registry-1.docker.io', isSource: true });
      });
    }
  }

  it('names an endpoint by its host and prefix', () => {
    const mirrors = { 'docker.io': mirror(['m.b:443/hub']) };
    expect(endpointsOf('nginx', { mirrors }).map(({ name, host }) => [name, host])).to.deep.equal([
      ['m.b:443/hub', 'm.b'],
      ['registry-1.docker.io', 'registry-1.docker.io'],
    ]);
  });

  for (const name of ['docker.io', 'Index.docker.io', 'registry-1.docker.io']) {
    it(`an insecure ${name} is Docker Hub`, () => {
      expect(endpointsOf('nginx', { insecure: [name] })[0]).to.include({ trust: insecureTrust, policy: 'configured' });
    });
  }

  it('names the hosts that the configuration names', () => {
    const mirrors = { 'docker.io': mirror(['m.b:443/hub', 'http://n.b:5000']) };
    const { namedHosts } = createRoutes({ mirrors, insecure: ['I.b'], hosts: () => undefined });
    expect([...namedHosts()].sort()).to.deep.equal(['i.b', 'm.b', 'n.b:5000']);
  });
});

describe("the endpoints of an image, by containerd's directory", () => {
  const trust: Trust = { id: 'own', verify: true, plain: false, authorities: ['pem'], clients: [] };
  const implicit: HostEntry<Trust> = { resolvesTags: true, headers: {} };
  const at = (path: string, other: Partial<HostEntry<Trust>> = {}): HostEntry<Trust> => ({
    ...implicit,
    address: { scheme: 'https', host: 'm.b', path },
    ...other,
  });
  const home = (host: string): HostEntry<Trust> => at('/v2', { address: { scheme: 'https', host, path: '/v2' } });
  const hosts = (entries: readonly HostEntry<Trust>[], isDefault = false) => ({
    hosts: (): HostsConfig => ({ entries, isDefault }),
  });

  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string][] = [
    [
      'a host, then the source, which its folder names',
      'quay.io/x',
      hosts([at('/v2', { resolvesTags: false }), implicit]),
      '~m.b/v2 x ?ns=quay.io digests | quay.io/v2 x configured',
    ],
    ['a source by _default is judged like any other', 'quay.io/x', hosts([implicit], true), 'quay.io/v2 x'],
    ['a registry below a path', 'q.io/x', hosts([at('/artifactory/api/q/v2')]), '~m.b/artifactory/api/q/v2 x ?ns=q.io'],
    ['a project, part of the repository', 'nginx', hosts([at('/v2/hub')]), '~m.b/v2 hub/library/nginx ?ns=docker.io'],
    [
      'a host that wants another repository, as a part of which it is asked',
      'nginx',
      hosts([at('/v2/hub', { rewrite: () => 'a/b' })]),
      '~m.b/v2 hub/a/b ?ns=docker.io',
    ],
    [
      'no repository that is invalid',
      'nginx',
      hosts([at('/v2', { rewrite: () => 'A?b' })]),
      '~m.b/v2 A?b ?ns=docker.io m.b rewrites it to an invalid repository',
    ],
    ['no /v2, and no path', 'q.io/x', hosts([at('/api'), at('')]), '~m.b/api x ?ns=q.io | ~m.b x ?ns=q.io'],
    [
      'its own setting for certificates has precedence over registries.insecure',
      'quay.io/x',
      { insecure: ['m.b', 'quay.io'], ...hosts([at('/v2', { tls: trust }), at('/v2/q'), implicit]) },
      '~m.b/v2 x ?ns=quay.io own | ~m.b/v2 q/x ?ns=quay.io insecure | quay.io/v2 x configured insecure',
    ],
    ['certificates for the source', 'nginx', hosts([{ ...implicit, tls: trust }]), `${HUB} configured own`],
    [
      'Docker Hub by any of its names, once',
      'nginx',
      hosts([home('registry-1.docker.io'), home('docker.io'), home('index.docker.io')]),
      `${HUB} configured`,
    ],
    [
      'the source again, if only then it may resolve tags',
      'quay.io/x',
      hosts([{ ...home('quay.io'), resolvesTags: false }, { ...home('quay.io'), resolvesTags: false }, implicit]),
      'quay.io/v2 x configured digests | quay.io/v2 x configured',
    ],
    [
      'the source with other certificates',
      'q.io/x',
      hosts([{ ...home('q.io'), tls: trust }, implicit]),
      'q.io/v2 x configured own | q.io/v2 x configured',
    ],
    ['localhost without verification', 'localhost:5/x', hosts([implicit]), 'localhost:5/v2 x configured insecure'],
    ['localhost with its CA', '127.0.0.1:5/x', hosts([{ ...implicit, tls: trust }]), '127.0.0.1:5/v2 x configured own'],
    ['localhost within a name', 'localhost.b.c/x', hosts([implicit]), 'localhost.b.c/v2 x configured'],
    ['localhost by _default: refused when dialled', 'localhost:5/x', hosts([implicit], true), 'localhost:5/v2 x'],
    ['registries.mirrors first', 'q.io/x', { ...only('q.io', 'n.b'), ...hosts([at('/v2')]) }, '~n.b/v2 x ?ns=q.io'],
  ];
  for (const [what, image, options, expected] of rows) {
    it(what, () => expect(lines(endpointsOf(image, options))).to.equal(expected));
  }

  it('headers go with their endpoint', () => {
    const found = endpointsOf('quay.io/x', hosts([at('/v2', { headers: { 'x-a': '1' } }), implicit]));
    expect(found.map(({ headers }) => headers)).to.deep.equal([{ 'x-a': '1' }, {}]);
  });

  it('are looked up by the registry as images name it', () => {
    const asked: string[] = [];
    const options = {
      hosts(registry: string) {
        asked.push(registry);
        return undefined;
      },
    };
    endpointsOf('nginx', options);
    endpointsOf('Quay.io:8443/x', options);
    expect(asked).to.deep.equal(['docker.io', 'quay.io:8443']);
  });
});

describe('an endpoint of registries.mirrors', () => {
  const accepted: [text: string, scheme: string, host: string, path: string][] = [
    ['m.b', 'https', 'm.b', ''],
    ['Mirror.Example.com:5000/hub', 'https', 'mirror.example.com:5000', '/hub'],
    ['http://m/', 'http', 'm', ''],
    ['HTTPS://m.b/a/b.c_d~e-f', 'https', 'm.b', '/a/b.c_d~e-f'],
    ['[::1]:5000/a', 'https', '[::1]:5000', '/a'],
    ['http://[2001:DB8::1]', 'http', '[2001:db8::1]', ''],
    ['10.0.0.1:443', 'https', '10.0.0.1:443', ''],
    ['my_mirror:5000', 'https', 'my_mirror:5000', ''],
    ['m.b/v20', 'https', 'm.b', '/v20'],
  ];
  for (const [text, scheme, host, path] of accepted) {
    it(`accepts ${text}`, () => expect(parseEndpoint(text)).to.deep.equal({ scheme, host, path }));
  }

  const refused: [problem: RegExp, texts: string[]][] = [
    [/"": a host is expected/, ['']],
    [/"ftp:\/\/m.b": the scheme must be http or https/, ['ftp://m.b']],
    [/port/, ['m.b:', 'm.b:0', 'm.b:65536', '[::1']],
    [/host/, ['::1', 'a..b', '-a.b', 'm.b\n', `${'a-'.repeat(100_000)}`]],
    [/IPv6/, ['[::g]']],
    [/neither a name nor an address/, ['127.1', '0x7f.0.0.1']],
    [/"mirr\\u\{f6\}r/, ['mirrör.example.com']],
    [/empty/, ['m.b//a', 'm.b/a//', `m.b/${'a/'.repeat(100_000)}/`]],
    [/neither/, ['m.b/../a', 'm.b/./a']],
    [/letters/, ['m.b/a b', 'm.b/a\r\nx']],
    [/query/, ['m.b?ns=x']],
    [/fragment/, ['m.b/a#b']],
    [/"m.b\/v2": omit "\/v2"/, ['m.b/v2']],
    [/omit "\/v2"/, ['https://m.b/v2/hub']],
  ];
  for (const [problem, text] of refused.flatMap(([why, texts]) => texts.map((each) => [why, each] as const))) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, () =>
      expect(() => parseEndpoint(text)).to.throw(Error, problem));
  }

  it('with a password in it is refused without being printed', () => {
    for (const text of ['https://me:secret@m.b', 'me:secret@m.b/x', 'ftp://me:secret@m.b']) {
      expect(() => parseEndpoint(text))
        .to.throw(Error, /user information/)
        .with.property('message')
        .that.does.not.include('secret');
    }
  });

  const wrong: [mirrors: Mirrors, problem: RegExp][] = [
    [{ 'quay.io': mirror(['m.b', 'm.b:0']) }, /^registries\.mirrors\.quay\.io\.endpoints\[1\]: "m\.b:0": the port/],
    [{ 'quay.io/ns': mirror(['m.b']) }, /^registries\.mirrors\.quay\.io\/ns: the host\[:port\] of a registry/],
    [{ 'https://quay.io': mirror(['m.b']) }, /^registries\.mirrors\.https:\/\/quay\.io: the host/],
    [{ '*': mirror(['m.b']) }, /^registries\.mirrors\.\*: "\*": the host/],
    [
      { 'docker.io': mirror(['m.b']), 'index.docker.io': mirror(['m.b']) },
      /index\.docker\.io: docker\.io is already configured/,
    ],
    [{ 'quay.io': mirror([], { fallback: false }) }, /^registries\.mirrors\.quay\.io: .* no registry is asked/],
  ];
  for (const [mirrors, problem] of wrong) {
    it(`is named if it is wrong: ${JSON.stringify(Object.keys(mirrors))} ${problem.source}`, () => {
      expect(() => createRoutes({ mirrors, insecure: [], hosts: () => undefined })).to.throw(Error, problem);
    });
  }
});

describe('the endpoints of an image that may lack platforms', () => {
  const sparse = (image: string, options: Partial<RouteOptions>): string[] =>
    endpointsOf(image, options).flatMap(({ name, isSparse }) => (isSparse ? [name] : []));
  const entry = (host: string): HostEntry<Trust> => ({
    address: { scheme: 'https', host, path: '/v2' },
    resolvesTags: true,
    headers: {},
  });
  const directory = { hosts: () => ({ entries: [entry('m.test'), entry('n.test')], isDefault: false }) };
  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string[]][] = [
    ['none, where nothing says so', 'quay.io/a', ahead('quay.io', 'm.test'), []],
    [
      'all mirrors, if the source is not asked',
      'quay.io/a',
      { mirrors: { 'quay.io': mirror(['m.test', 'n.test/hub'], { sparse: true, fallback: false }) } },
      ['m.test', 'n.test/hub'],
    ],
    ['a named host', 'quay.io/a', { ...only('quay.io', 'm.test', 'N.test/hub'), sparse: ['n.test'] }, ['n.test/hub']],
    ['no mirror before its source', 'quay.io/a', { ...ahead('quay.io', 'm.test'), sparse: ['m.test'] }, []],
    [
      'a mirror and its source, if both are named',
      'quay.io/a',
      { ...ahead('quay.io', 'm.test'), sparse: ['m.test', 'quay.io'] },
      ['m.test', 'quay.io'],
    ],
    ['a named registry', 'quay.example.com/a', { sparse: ['Quay.example.com'] }, ['quay.example.com']],
    ['a named registry at its usual port', 'quay.io/a', { sparse: ['quay.io:443'] }, ['quay.io']],
    ['no registry at another port', 'quay.io:8443/a', { sparse: ['quay.io'] }, []],
    ['Docker Hub by any of its names', 'nginx', { sparse: ['docker.io'] }, ['registry-1.docker.io']],
    ["a host of containerd's directory, if it is the last", 'q.io/a', { ...directory, sparse: ['n.test'] }, ['n.test']],
  ];
  for (const [what, image, options, expected] of rows) {
    it(`are ${what}`, () => expect(sparse(image, options)).to.deep.equal(expected));
  }
});
