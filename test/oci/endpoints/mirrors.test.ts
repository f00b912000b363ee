import { expect } from 'chai';
import type { HostEntry, HostsConfig } from '../../../src/oci/endpoints/hosts-toml.ts';
import { createRoutes, type Mirrors, parseEndpoint, type RouteOptions } from '../../../src/oci/endpoints/mirrors.ts';
import { insecureTrust, type Trust } from '../../../src/oci/http/trust.ts';
import { parseReference } from '../../../src/oci/reference.ts';

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

/**
 * An endpoint on one line: base, repository, query, and what is unusual: the name for credentials where it is not that of the place
 * itself, whether it is a mirror, the policy for addresses where a mirror's is not `configured` and a source's not `registry`.
 */
function lines(image: string, options: Partial<RouteOptions> = {}): string[] {
  return endpointsOf(image, options).map((endpoint) => {
    const { base, repository, query, credentialName, isSource, policy, trust } = endpoint;
    const place = `${base.replace(/^https?:\/\//, '').replace(/\/v2(?=\/|$)/, '')}/${repository}`;
    return [
      ...[base, repository, query],
      credentialName === place ? '' : `as ${credentialName}`,
      isSource ? '' : 'mirror',
      policy === (isSource ? 'registry' : 'configured') ? '' : policy,
      trust?.id ?? '',
      endpoint.resolvesTags ? '' : 'digests',
    ]
      .filter((part) => part !== '')
      .join(' ');
  });
}

const HUB = 'https://registry-1.docker.io/v2 library/nginx as docker.io/library/nginx';

describe('the endpoints of an image', () => {
  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string[]][] = [
    ['Docker Hub, where nothing is configured', 'nginx', {}, [HUB]],
    ['another registry, where nothing is configured', 'quay.io/ns/x:1', {}, ['https://quay.io/v2 ns/x']],
    ['a registry at a port', 'a.b:5000/x', {}, ['https://a.b:5000/v2 x']],
    ['an insecure registry', 'a.b:5000/x', { insecure: ['A.b:5000'] }, ['https://a.b:5000/v2 x configured insecure']],
    ['an insecure registry is so at its port only', 'a.b/x', { insecure: ['a.b:5000'] }, ['https://a.b/v2 x']],
    [
      'IPv6',
      '[2001:db8::1]:5000/x',
      { insecure: ['[2001:db8::1]:5000'] },
      ['https://[2001:db8::1]:5000/v2 x configured insecure'],
    ],
    [
      'a mirror, then the source',
      'nginx',
      ahead('docker.io', 'mirror.example.com'),
      ['https://mirror.example.com/v2 library/nginx ?ns=docker.io mirror', HUB],
    ],
    [
      'mirrors in their order, with prefixes and ports',
      'nginx',
      ahead('docker.io', 'b.example.com:8443/hub', 'https://a.example.com/proxy/cache/'),
      [
        'https://b.example.com:8443/v2 hub/library/nginx ?ns=docker.io mirror',
        'https://a.example.com/v2 proxy/cache/library/nginx ?ns=docker.io mirror',
        HUB,
      ],
    ],
    [
      'a mirror and never the source',
      'nginx',
      only('docker.io', 'mirror.example.com'),
      ['https://mirror.example.com/v2 library/nginx ?ns=docker.io mirror'],
    ],
    [
      "a mirror with the source's credentials",
      'quay.io/ns/x',
      { mirrors: { 'quay.io': mirror(['mirror.example.com/q'], { fallback: false, credentials: 'source' }) } },
      ['https://mirror.example.com/v2 q/ns/x ?ns=quay.io as quay.io/ns/x mirror'],
    ],
    [
      'a mirror in plain http',
      'quay.io/x',
      only('quay.io', 'http://127.0.0.1:5000/q'),
      ['http://127.0.0.1:5000/v2 q/x ?ns=quay.io mirror'],
    ],
    [
      'an insecure mirror beside one that is not',
      'quay.io/x',
      { insecure: ['m.local:5000'], ...ahead('quay.io', 'm.local:5000', 'https://m.local:5001') },
      [
        'https://m.local:5000/v2 x ?ns=quay.io mirror insecure',
        'https://m.local:5001/v2 x ?ns=quay.io mirror',
        'https://quay.io/v2 x',
      ],
    ],
    [
      'plain http that is configured needs no setting for certificates',
      'quay.io/x',
      { insecure: ['m.local:5000'], ...only('quay.io', 'http://m.local:5000') },
      ['http://m.local:5000/v2 x ?ns=quay.io mirror'],
    ],
    [
      'a mirror at an IPv6 address, of a registry at a port',
      'a.b:5000/x',
      { mirrors: { 'a.b:5000': mirror(['http://[fd00::5]:5000']) } },
      ['http://[fd00::5]:5000/v2 x ?ns=a.b%3A5000 mirror', 'https://a.b:5000/v2 x'],
    ],
    [
      'a registry at an IPv6 address that has a mirror',
      '[::1]:5000/x',
      only('[::1]:5000', 'm.b'),
      ['https://m.b/v2 x ?ns=%5B%3A%3A1%5D%3A5000 mirror'],
    ],
    [
      "the node's localhost through a mirror",
      'localhost:32000/x',
      only('localhost:32000', 'http://registry.registry.svc:5000'),
      ['http://registry.registry.svc:5000/v2 x ?ns=localhost%3A32000 mirror'],
    ],
    [
      'a mirror of another registry is not asked',
      'quay.io/x',
      { mirrors: { 'docker.io': mirror(['m.b']), 'quay.io:443': mirror(['n.b']) } },
      ['https://quay.io/v2 x'],
    ],
    [
      'a digest as well as a tag',
      `quay.io/x@${DIGEST}`,
      only('quay.io', 'm.b/q'),
      ['https://m.b/v2 q/x ?ns=quay.io mirror'],
    ],
    [
      'the source named among its mirrors, once and in its place',
      'nginx',
      ahead('docker.io', 'registry-1.docker.io', 'm.b', 'docker.io'),
      [`${HUB} configured`, 'https://m.b/v2 library/nginx ?ns=docker.io mirror'],
    ],
    [
      'the source over plain http, once',
      'a.b:5000/x',
      ahead('a.b:5000', 'http://a.b:5000'),
      ['http://a.b:5000/v2 x configured'],
    ],
    [
      "the source's host with a prefix is a mirror that knows whose image is meant",
      'quay.io/x',
      ahead('quay.io', 'quay.io/proxy'),
      ['https://quay.io/v2 proxy/x mirror', 'https://quay.io/v2 x'],
    ],
    [
      'the same mirror twice',
      'quay.io/x',
      only('quay.io', 'm.b', 'https://M.b/'),
      ['https://m.b/v2 x ?ns=quay.io mirror'],
    ],
    ['no mirror but the source', 'quay.io/x', ahead('quay.io'), ['https://quay.io/v2 x']],
  ];
  for (const [what, image, options, expected] of rows) {
    it(what, () => expect(lines(image, options)).to.deep.equal(expected));
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

  it('an insecure registry has the one trust that all insecure registries share', () => {
    expect(endpointsOf('a.b/x', { insecure: ['a.b'] })[0]?.trust).to.equal(insecureTrust);
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

  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string[]][] = [
    [
      'a host, then the source, which its folder names',
      'quay.io/x',
      hosts([at('/v2', { resolvesTags: false }), implicit]),
      ['https://m.b/v2 x ?ns=quay.io mirror digests', 'https://quay.io/v2 x configured'],
    ],
    [
      'a source that only _default stands for is judged like any other',
      'quay.io/x',
      hosts([implicit], true),
      ['https://quay.io/v2 x'],
    ],
    [
      'a registry below a path, as containerd appends /v2',
      'quay.io/x',
      hosts([at('/artifactory/api/docker/q/v2')]),
      ['https://m.b/artifactory/api/docker/q/v2 x ?ns=quay.io mirror'],
    ],
    [
      'a project of a registry, whose name is part of the repository',
      'nginx',
      hosts([at('/v2/hub')]),
      ['https://m.b/v2 hub/library/nginx ?ns=docker.io mirror'],
    ],
    [
      'a path without /v2, and no path',
      'quay.io/x',
      hosts([at('/api'), at('')]),
      ['https://m.b/api x ?ns=quay.io mirror', 'https://m.b x ?ns=quay.io mirror'],
    ],
    [
      'its own setting for certificates has precedence over registries.insecure',
      'quay.io/x',
      { insecure: ['m.b', 'quay.io'], ...hosts([at('/v2', { tls: trust }), at('/v2/q'), implicit]) },
      [
        'https://m.b/v2 x ?ns=quay.io mirror own',
        'https://m.b/v2 q/x ?ns=quay.io mirror insecure',
        'https://quay.io/v2 x configured insecure',
      ],
    ],
    ['certificates for the source', 'nginx', hosts([{ ...implicit, tls: trust }]), [`${HUB} configured own`]],
    [
      'Docker Hub by any of its names, once',
      'nginx',
      hosts([home('registry-1.docker.io'), home('docker.io'), home('index.docker.io')]),
      [`${HUB} configured`],
    ],
    [
      'the source again, if only then it may resolve tags',
      'quay.io/x',
      hosts([{ ...home('quay.io'), resolvesTags: false }, { ...home('quay.io'), resolvesTags: false }, implicit]),
      ['https://quay.io/v2 x configured digests', 'https://quay.io/v2 x configured'],
    ],
    [
      'the source again with other certificates',
      'quay.io/x',
      hosts([{ ...home('quay.io'), tls: trust }, implicit]),
      ['https://quay.io/v2 x configured own', 'https://quay.io/v2 x configured'],
    ],
    [
      'localhost without verification, where a folder names it',
      'localhost:5001/x',
      hosts([implicit]),
      ['https://localhost:5001/v2 x configured insecure'],
    ],
    [
      'localhost with certificates of its own',
      '127.0.0.1:5001/x',
      hosts([{ ...implicit, tls: trust }]),
      ['https://127.0.0.1:5001/v2 x configured own'],
    ],
    [
      'localhost within a name is not localhost',
      'localhost.example.com/x',
      hosts([implicit]),
      ['https://localhost.example.com/v2 x configured'],
    ],
    [
      'localhost that only _default stands for is refused when it is dialled',
      'localhost:5001/x',
      hosts([implicit], true),
      ['https://localhost:5001/v2 x'],
    ],
    [
      'registries.mirrors goes first',
      'quay.io/x',
      { ...only('quay.io', 'n.b'), ...hosts([at('/v2')]) },
      ['https://n.b/v2 x ?ns=quay.io mirror'],
    ],
  ];
  for (const [what, image, options, expected] of rows) {
    it(what, () => expect(lines(image, options)).to.deep.equal(expected));
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
    ['mirror.example.com', 'https', 'mirror.example.com', ''],
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

  const refused: [text: string, problem: RegExp][] = [
    ['', /"": a host is expected/],
    ['https://', /host/],
    ['/hub', /host/],
    ['ftp://m.b', /"ftp:\/\/m.b": the scheme must be http or https/],
    ['file:///etc/passwd', /scheme/],
    ['m.b:', /port/],
    ['m.b:0', /port/],
    ['m.b:65536', /port/],
    ['m.b:05000', /port/],
    ['m.b:x', /port/],
    ['::1', /host/],
    ['[::1', /port/],
    ['[::g]', /IPv6/],
    ['[::1%25eth0]', /IPv6/],
    ['a..b', /host/],
    ['a.b.', /host/],
    ['-a.b', /host/],
    ['a b', /host/],
    ['2130706433', /neither a name nor an address/],
    ['127.1', /neither a name nor an address/],
    ['0x7f.0.0.1', /neither a name nor an address/],
    ['mirrör.example.com', /"mirr\\u\{f6\}r/],
    ['*.example.com', /host/],
    ['m.b//a', /empty/],
    ['m.b/a//', /empty/],
    ['m.b/../a', /neither/],
    ['m.b/./a', /neither/],
    ['m.b/%2e%2e', /letters/],
    ['m.b/a b', /letters/],
    ['m.b/a\r\nx', /letters/],
    ['m.b\n', /host/],
    ['m.b?ns=x', /query/],
    ['m.b/a#b', /fragment/],
    ['m.b/v2', /"m.b\/v2": omit "\/v2"/],
    ['https://m.b/v2/hub', /omit "\/v2"/],
    [`m.b/${'a/'.repeat(100_000)}/`, /empty/],
    [`${'a-'.repeat(100_000)}`, /host/],
  ];
  for (const [text, problem] of refused) {
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
  const directory = (...entries: HostEntry<Trust>[]): Partial<RouteOptions> => ({
    hosts: () => ({ entries, isDefault: false }),
  });
  const entry = (host: string): HostEntry<Trust> => ({
    address: { scheme: 'https', host, path: '/v2' },
    resolvesTags: true,
    headers: {},
  });
  const rows: [what: string, image: string, options: Partial<RouteOptions>, expected: string[]][] = [
    ['none, where nothing says so', 'quay.io/a', ahead('quay.io', 'm.test'), []],
    [
      'all mirrors, if the source is not asked',
      'quay.io/a',
      { mirrors: { 'quay.io': mirror(['m.test', 'n.test/hub'], { sparse: true, fallback: false }) } },
      ['m.test', 'n.test/hub'],
    ],
    [
      'a named host, under any path',
      'quay.io/a',
      { ...only('quay.io', 'm.test', 'N.test/hub'), sparse: ['n.test'] },
      ['n.test/hub'],
    ],
    [
      'no mirror before one that has everything',
      'quay.io/a',
      { ...only('quay.io', 'm.test', 'n.test'), sparse: ['m.test'] },
      [],
    ],
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
    [
      "a host of containerd's directory, if nothing is after it",
      'quay.io/a',
      { ...directory(entry('m.test'), entry('n.test')), sparse: ['n.test'] },
      ['n.test'],
    ],
    [
      "no host of containerd's directory that another one is after",
      'quay.io/a',
      { ...directory(entry('m.test'), entry('n.test')), sparse: ['m.test'] },
      [],
    ],
  ];
  for (const [what, image, options, expected] of rows) {
    it(`are ${what}`, () => expect(sparse(image, options)).to.deep.equal(expected));
  }
});
