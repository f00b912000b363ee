import { sep } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { type HostsFile, parseHostsToml } from '../../../src/oci/endpoints/hosts-toml.ts';

const DIRECTORY = '/etc/containerd/certs.d/registry.example.com';

function parse(text: string): HostsFile {
  return parseHostsToml(text, { directory: DIRECTORY });
}

/** Returns each host on one line, with its settings, and with paths as Linux writes them. */
function lines(text: string): string[] {
  return parse(text).entries.map(({ address, resolvesTags, headers, tls }) =>
    [
      address === undefined ? 'itself' : `${address.scheme}://${address.host}${address.path}`,
      ...(resolvesTags ? [] : ['digests']),
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ...(tls === undefined ? [] : [tls.verify ? 'verify' : 'unverified', ...(tls.plain ? ['or plain'] : [])]),
      ...(tls?.authorities ?? []).map((file) => `ca ${file}`),
      ...(tls?.clients ?? []).map(({ certificate, key }) => `client ${certificate} ${key}`),
    ]
      .join(' ')
      .replaceAll(sep, '/'),
  );
}

describe('hosts.toml', () => {
  const rows: [what: string, text: string, expected: string][] = [
    ['nothing but comments', '# to be written\n', 'itself'],
    [
      'a server of another name, and a host before it',
      'server = "https://docker.io"\n[host."https://registry-1.docker.io"]\ncapabilities = ["pull", "resolve"]',
      'https://registry-1.docker.io/v2 | https://docker.io/v2',
    ],
    [
      'a public mirror that resolves nothing, an internal one with an authority, and the source',
      `server = "https://registry-1.docker.io"
[host."https://public.example.com"]
  capabilities = ["pull"]
[host."https://internal.example.com"]
  capabilities = ["pull", "resolve"]
  ca = "internal.crt"`,
      `https://public.example.com/v2 digests | https://internal.example.com/v2 verify ca ${DIRECTORY}/internal.crt | https://registry-1.docker.io/v2`,
    ],
    [
      'the registry itself after the hosts, where no server is given',
      '[host."https://registry.example.com"]',
      'https://registry.example.com/v2 | itself',
    ],
    ['a mirror as the server, and nothing after it', 'server = "https://m.b"', 'https://m.b/v2'],
    ['a server without a scheme', 'server = "m.b:5000"', 'https://m.b:5000/v2'],
    ['an empty server', 'server = ""', 'itself'],
    [
      'plain http with something about certificates is https first',
      '[host."http://192.168.31.250:5000"]\ncapabilities = ["pull", "resolve", "push"]\nskip_verify = true',
      'https://192.168.31.250:5000/v2 unverified or plain | itself',
    ],
    [
      'and verified, where that is what is said',
      '[host."http://m.b"]\nca = "/ca.crt"\n[host."http://n.b:5000"]\nskip_verify = false',
      'https://m.b/v2 verify or plain ca /ca.crt | https://n.b:5000/v2 verify or plain | itself',
    ],
    [
      'but not at the port of http',
      '[host."http://m.b:80"]\nskip_verify = true',
      'http://m.b:80/v2 unverified | itself',
    ],
    ['plain http', '[host."http://m.b"]', 'http://m.b/v2 | itself'],
    ['an unverified host', '[host."https://m.b"]\nskip_verify = true', 'https://m.b/v2 unverified | itself'],
    ['a verified host', '[host."https://m.b"]\nskip_verify = false', 'https://m.b/v2 verify | itself'],
    [
      'hosts in the order of the file, whatever their names and fields',
      '[host."https://z.b".header]\nx-a = "1"\n[host."https://a.b"]\n[host."https://m.b"]\n[host."https://z.b"]\ncapabilities = ["pull"]',
      'https://z.b/v2 digests x-a: 1 | https://a.b/v2 | https://m.b/v2 | itself',
    ],
    [
      'a list of authorities',
      'server = "m.b"\nca = ["/etc/certs/a.pem", "b.pem", "../c.pem"]',
      `https://m.b/v2 verify ca /etc/certs/a.pem ca ${DIRECTORY}/b.pem ca /etc/containerd/certs.d/c.pem`,
    ],
    ['an authority for the registry itself', 'ca = "/ca.pem"', 'itself verify ca /ca.pem'],
    [
      'a client with its key in one file',
      'server = "m.b"\nclient = "/c.pem"',
      'https://m.b/v2 verify client /c.pem /c.pem',
    ],
    [
      'pairs of files, of which the second may be empty',
      'server = "m.b"\nclient = [["/c.cert", "c.key"], ["/d.pem", ""], "/e.pem", ["/f.pem"]]',
      `https://m.b/v2 verify client /c.cert ${DIRECTORY}/c.key client /d.pem /d.pem client /e.pem /e.pem client /f.pem /f.pem`,
    ],
    [
      'headers',
      '[header]\nX-Custom-1 = "a value"\nx-custom-2 = ["one", "two"]\nx-CUSTOM-2 = "three"\nx-none = []',
      'itself x-custom-1: a value x-custom-2: one, two, three',
    ],
    [
      'a path, to which /v2 is appended',
      '[host."https://m.b/us"]\n[host."https://m.b/artifactory/api/docker/hub/"]\n[host."https://m.b/"]',
      'https://m.b/us/v2 | https://m.b/artifactory/api/docker/hub/v2 | https://m.b/v2 | itself',
    ],
    [
      'a path that ends in /v2',
      '[host."https://m.b/v2"]\n[host."https://m.b/x/v2/"]',
      'https://m.b/v2 | https://m.b/x/v2 | itself',
    ],
    [
      'a path that is left unchanged',
      '[host."https://m.b/v2/upstream"]\ncapabilities = ["pull"]\noverride_path = true\n[host."https://n.b"]\noverride_path = true',
      'https://m.b/v2/upstream digests | https://n.b | itself',
    ],
    [
      'a path under /v2 that is changed',
      '[host."https://m.b/v2/upstream"]\noverride_path = false',
      'https://m.b/v2/upstream/v2 | itself',
    ],
    [
      'capabilities in capitals, and newer ones',
      '[host."https://m.b"]\ncapabilities = ["PULL", "Resolve", "referrers"]',
      'https://m.b/v2 | itself',
    ],
    ['no capabilities, which means all', '[host."https://m.b"]\ncapabilities = []', 'https://m.b/v2 | itself'],
    [
      'hosts that may not be pulled from are left out',
      '[host."https://m.b"]\ncapabilities = ["push"]\n[host."https://n.b"]\ncapabilities = ["resolve"]',
      'itself',
    ],
    [
      'a server that may not be pulled from',
      'server = "m.b"\ncapabilities = ["push"]\n[host."https://n.b"]',
      'https://n.b/v2',
    ],
    ['fields in capitals', 'Server = "m.b"\nSKIP_VERIFY = true', 'https://m.b/v2 unverified'],
    ['a host without a scheme', '[host."m.b:5000"]', 'https://m.b:5000/v2 | itself'],
    ['a host whose name begins like a scheme', '[host."http-mirror.b"]', 'https://http-mirror.b/v2 | itself'],
    [
      'a time for connecting',
      'dial_timeout = "1m1.5s"\n[host."https://m.b"]\ndial_timeout = ""',
      'https://m.b/v2 | itself',
    ],
    ['a byte order mark', '\ufeffserver = "m.b"', 'https://m.b/v2'],
    ['an inline table', 'host = {"https://b.b" = {}, "https://a.b" = {}}', 'https://b.b/v2 | https://a.b/v2 | itself'],
    ['names of JavaScript', '[header]\n__proto__ = "a"\nconstructor = "b"', 'itself __proto__: a constructor: b'],
  ];
  for (const [what, text, expected] of rows) {
    it(`reads ${what}`, () => expect(lines(text).join(' | ')).to.equal(expected));
  }

  const warned: [text: string, warnings: RegExp[]][] = [
    ['[rewrite]\n"^library/(.*)" = "a/b"', [/^rewrite: unknown/]],
    ['servr = "m.b"', [/^servr: unknown field, ignored \(as by the runtime\); known fields: capabilities, .*server$/]],
    ['[host."https://m.b"]\noverridepath = true', [/^host\."https:\/\/m\.b"\.overridepath: unknown/]],
    ['[host."https://m.b"]\nserver = "n.b"', [/^host\."https:\/\/m\.b"\.server: unknown/]],
    ['[HOST."https://m.b"]', [/^HOST: unknown/]],
    ['[host."https://m.b".host."https://n.b"]', [/^host\."https:\/\/m\.b"\.host: unknown/]],
    [
      'capabilities = ["pull"]\noverride_path = true',
      [/^capabilities: has an effect only together with server/, /^override_path: has an effect/],
    ],
    ['[header]\nHost = "n.b"\nAccept = "x/y"', [/^header\."Host": ignored/, /^header\."Accept": ignored/]],
    ['server = "m.b"\ncapabilities = ["pull"]\nca = []', []],
  ];
  for (const [text, expected] of warned) {
    it(`reports what it ignores in ${JSON.stringify(text)}`, () => {
      const { warnings } = parse(text);
      expect(warnings).to.have.length(expected.length);
      for (const [index, pattern] of expected.entries()) expect(warnings[index]).to.match(pattern);
    });
  }

  for (const [rules, repository, expected] of [
    ['"^library/(.*)" = "hub/$1"', 'library/nginx', 'hub/nginx'],
    ['"^library/(.*)" = "hub/$1"', 'rancher/pause', 'rancher/pause'],
    [`"(.*)" = "cache/$\{1}"`, 'rancher/pause', 'cache/rancher/pause'],
    ['"^x" = "y"\n"^(.+)/(.+)$" = "$2-$1$3"\n".*" = "z"', 'a/b', 'b-a'],
    ['"^(library|rancher)/(.*)" = "$1/hub/$2"', 'rancher/pause', 'rancher/hub/pause'],
    ['"/" = "-$$1"', 'a/b/c', 'a-$1b-$1c'],
    ['"(.*)" = "m/$1x"', 'a', 'm/'],
  ] as const) {
    it(`rewrites ${repository} as k3s does by ${rules}`, () => {
      const [entry] = parse(`[host."https://m.b".rewrite]\n${rules}`).entries;
      expect(entry?.rewrite?.(repository)).to.equal(expected);
    });
  }

  const refused: [text: string, problem: RegExp][] = [
    ...['(', '^((a)*)*', '^(?=a)', '^(a)\\\\1', 'a*a*a*', '^a*a*a*a*', '^(a|a)+', '^a?a?a?a?', '^a|b*c*d*'].map(
      (pattern): [string, RegExp] => [
        `[host."https://m.b".rewrite]\n"${pattern}" = "x"`,
        /^host\."https:\/\/m\.b"\.rewrite\.".*": (?:not a regular expression|expected a pattern from \^ on .*)$/,
      ],
    ),
    ['[host."https://m.b".rewrite]\n"^a" = 1', /rewrite\."\^a": expected a text, got a number$/],
    ['[host."https://m.b"]\nrewrite = 1', /rewrite: expected a table of patterns .*, got a number$/],
    ['server = ', /^line 1, column 10: /],
    ['[host."https://m.b"]\n[host."https://m.b"]', /^line 2, column 2: trying to redefine/],
    ['server = 5', /^server: expected a host or URL, got a number$/],
    ['server = ["m.b"]', /^server: .* got a list$/],
    ['server = "ftp://m.b"', /^server: "ftp:\/\/m\.b": the scheme must be http or https$/],
    ['host = "https://m.b"', /^host: expected tables such as .*, got a string$/],
    ['host = 1979-05-27', /^host: .* got a date$/],
    ['[[host]]', /^host: .* got a list$/],
    ['[host]\n"https://m.b" = true', /^host\."https:\/\/m\.b": expected a table, got a boolean$/],
    ['[[host."https://m.b"]]', /^host\."https:\/\/m\.b": expected a table, got a list$/],
    ['[host."unix:///run/x.sock"]', /^host\."unix:.*": .*scheme/],
    ['capabilities = "pull"', /^capabilities: expected a list of pull, resolve, push, referrers$/],
    ['[host."https://m.b"]\ncapabilities = ["pul"]', /^host\."https:\/\/m\.b"\.capabilities: expected/],
    ['server = "m.b"\ncapabilities = ["push"]', /^capabilities: no host with the capability pull is left$/],
    ['skip_verify = "true"', /^skip_verify: expected true or false, got a string$/],
    ['override_path = 1', /^override_path: expected true or false, got a number$/],
    ['ca = 1', /^ca: expected a path or a list of paths, got a number$/],
    ['ca = ""', /^ca: .* got an empty text$/],
    ['ca = ["/a", 1]', /^ca: .* got a list$/],
    ['client = ""', /^client: .* got an empty text$/],
    ['client = [1]', /^client: expected a path, .* got a number$/],
    ['client = [["", "/k"]]', /^client: .* got a list$/],
    ['client = [["/a", "/b", "/c"]]', /^client: .* got a list$/],
    ['client = [["/a", 1]]', /^client: .* got a list$/],
    ['header = "x"', /^header: expected a table, got a string$/],
    ['[header]\n"x y" = "z"', /^header\."x y": not a valid header name$/],
    ['[header]\n"x\\r\\ny" = "z"', /^header\."x\\u\{d\}\\u\{a\}y": not a valid header name/],
    ['[header]\nx = 1', /^header\."x": expected a text or a list of texts, got a number$/],
    ['[header]\nx = ["a", 1]', /^header\."x": .* got a list$/],
    ['[header]\nx = "secret\\r\\ny: z"', /^header\."x": the value has a line break/],
    ['[header]\nx = ["ok", "secret\\u0000"]', /^header\."x": the value/],
    ['[header]\nx = "secret\\u20ac"', /^header\."x": the value/],
  ];
  for (const [text, problem] of refused) {
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => expect(() => parse(text)).to.throw(Error, problem));
  }

  it('reports what is wrong without values that may be secret', () => {
    const texts = [
      'server = "https://me:secret@m.b"',
      '[host."https://me:secret@m.b"]',
      '[host."https://me:secret@m.b"]\nca = 1',
      '[header]\nauthorization = "Basic secret\\n"',
      '[header]\nauthorization = "Basic secret',
      '[header]\nauthorization = Basic secret',
      '[header]\nauthorization = "Basic secret"\nauthorization = "Basic secret"',
    ];
    for (const text of texts) {
      expect(() => parse(text))
        .to.throw(Error)
        .with.property('message')
        .that.does.not.include('secret');
    }
  });

  it('parses any input, or reports what is wrong with it', () => {
    const words = ['\n', '\r\n', ...'[ ] " = . # host server ca header https://m.b { } ,'.split(' ')];
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words, ' ', '0', 'true'), { maxLength: 60 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (given) => {
        try {
          expect(parse(given).entries).not.to.have.length(0);
        } catch (error) {
          expect(error)
            .to.be.instanceOf(Error)
            .with.property('message')
            .that.does.not.match(/[\r\n]/);
        }
      }),
    );
  });

  it('takes linear time for hostile input', () => {
    const fill = (part: string): string => part.repeat(Math.floor((256 * 1024 - 20) / part.length));
    const texts = [
      fill('['),
      `a = ${fill('[')}`,
      `a = ${fill('{a=')}`,
      `ca = ["${fill('a')}"]`,
      `server = "${fill('a.')}"`,
      `server = "m.b${fill('/')}"`,
      `server = "${fill('a-')}"`,
      `[header]\n"${fill('x ')}" = ""`,
      `[header]\nx = "${fill('\\t')}"`,
      Array.from({ length: 9_000 }, (_, index) => `[host."https://h${index}.b"]`).join('\n'),
      Array.from({ length: 20_000 }, (_, index) => `k${index} = 1`).join('\n'),
      `[header]\n${Array.from({ length: 17_000 }, (_, index) => `x${index} = "1"`).join('\n')}`,
      fill('\r\n'),
      fill('#'),
    ];
    for (const text of texts) {
      try {
        parse(text);
      } catch (error) {
        expect(error).to.be.instanceOf(Error);
      }
    }
  });
});
