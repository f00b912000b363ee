import { expect } from 'chai';
import { ImageError } from '../../src/oci/errors.ts';
import { parseImageConfig, parseManifest } from '../../src/oci/manifest.ts';
import { CONFIG, IMAGE, INDEX, sha256 } from './server.ts';

const LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const SCHEMA2 = 'application/vnd.docker.distribution.manifest.v2+json';
const D = sha256('x');
const config = { mediaType: CONFIG, digest: D, size: 1 };
const entry = (os: string, architecture: string, more: object = {}): object => ({
  mediaType: IMAGE,
  digest: D,
  size: 1,
  platform: { os, architecture, ...more },
});
const bytes = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

describe('a manifest', () => {
  const platforms: [what: string, entries: unknown[], expected: string[], skipped: number, children: number][] = [
    ['one', [entry('linux', 'amd64')], ['linux/amd64'], 0, 0],
    ['aliases', [entry('Linux', 'x86_64'), entry('linux', 'aarch64')], ['linux/amd64', 'linux/arm64'], 0, 0],
    [
      'variants',
      [entry('linux', 'arm', { variant: 'v6' }), entry('linux', 'arm', { variant: 'v7' })],
      ['linux/arm/v6', 'linux/arm/v7'],
      0,
      0,
    ],
    ['a strange variant', [entry('linux', 'arm', { variant: 'a\nb' })], ['linux/arm'], 0, 0],
    [
      'Windows versions',
      [entry('windows', 'amd64', { 'os.version': '1' }), entry('windows', 'amd64', { 'os.version': '2' })],
      ['windows/amd64'],
      0,
      0,
    ],
    ['unknown', [entry('unknown', 'unknown'), entry('linux', 'amd64')], ['linux/amd64'], 1, 0],
    ['an unknown operating system', [entry('unknown', 'amd64')], [], 1, 0],
    [
      'strange strings',
      [entry('linux', 'amd64\nx'), entry('li nux', 'amd64'), entry('linux', 'a'.repeat(99))],
      [],
      3,
      0,
    ],
    [
      'an attestation with a platform',
      [{ ...entry('linux', 'amd64'), annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } }],
      [],
      1,
      0,
    ],
    ['no platform', [{ mediaType: IMAGE, digest: D }, { ...entry('', 'amd64') }], [], 0, 2],
    [
      'a nested index',
      [
        { mediaType: INDEX, digest: D },
        { mediaType: LIST, digest: D },
      ],
      [],
      0,
      2,
    ],
    ['something else', [{ mediaType: 'application/x', digest: D }], [], 1, 0],
    ['an artifact', [{ mediaType: IMAGE, digest: D, artifactType: 'application/sbom' }], [], 1, 0],
    ['nothing', [], [], 0, 0],
  ];
  for (const [what, manifests, expected, skipped, children] of platforms) {
    it(`that is an index with ${what} gives ${expected.join(', ') || 'none'}`, () => {
      const parsed = parseManifest(bytes({ schemaVersion: 2, manifests }), INDEX);
      if (parsed.kind !== 'index') return expect.fail(parsed.kind);
      const names = parsed.platforms.map(({ os, architecture, variant }) =>
        [os, architecture, variant].filter(Boolean).join('/'),
      );
      expect(names).to.deep.equal(expected);
      expect(parsed.skipped).to.have.length(skipped);
      expect(parsed.children).to.have.length(children);
      for (const { reason } of parsed.skipped) expect(reason).to.match(/^[\x20-\x7e]{1,200}$/);
    });
  }

  const accepted: [what: string, body: unknown, type: string | undefined, kind: string][] = [
    ['an OCI image', { schemaVersion: 2, mediaType: IMAGE, config, layers: [] }, IMAGE, 'image'],
    [
      'a Docker image',
      { schemaVersion: 2, mediaType: SCHEMA2, config, layers: [] },
      `${SCHEMA2}; charset=utf-8`,
      'image',
    ],
    ['an image without a type', { schemaVersion: 2, config, layers: [] }, 'application/json', 'image'],
    [
      'an image of 2016',
      { config: { ...config, mediaType: 'application/octet-stream' }, layers: [] },
      SCHEMA2,
      'image',
    ],
    ['an index without a type', { schemaVersion: 2, manifests: [] }, undefined, 'index'],
    ['a Docker list', { schemaVersion: 2, mediaType: LIST, manifests: [] }, LIST.toUpperCase(), 'index'],
    ['a list sent as text', { schemaVersion: 2, manifests: [] }, 'text/plain', 'index'],
    ['a list sent as HTML', { schemaVersion: 2, manifests: [] }, 'text/html', 'index'],
    ['a list with a prototype', '{"__proto__":{"layers":[]},"constructor":1,"manifests":[]}', INDEX, 'index'],
    ['a list that has its key twice', '{"manifests":5,"manifests":[]}', INDEX, 'index'],
  ];
  for (const [what, body, type, kind] of accepted) {
    it(`that is ${what} is an ${kind}`, () => expect(parseManifest(bytes(body), type).kind).to.equal(kind));
  }

  const twice = JSON.stringify({ manifests: [entry('linux', 'amd64')] });
  const broken: Readonly<Record<string, string | Uint8Array>> = {
    'a word': '"INTERNAL-PAGE"',
    null: 'null',
    'a byte order mark': `\uFEFF${twice}`,
    'UTF-16': Buffer.from(twice, 'utf16le'),
    'two documents': `${twice}${twice}`,
    '100,000 nested lists': '['.repeat(100_000) + ']'.repeat(100_000),
    '100,000 nested lists that do not end': '['.repeat(100_000),
    '100,000 nested objects': `${'{"manifests":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
    '100,000 nested entries': `{"manifests":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'a number for a list': '{"manifests":1e999}',
    'a word for a list': '{"manifests":"length"}',
    'an object with a length': '{"manifests":{"length":1,"0":{}}}',
    'null for an entry': '{"manifests":[null]}',
    'a number for a digest': '{"manifests":[{"digest":5}]}',
    'a path after a digest': `{"manifests":[{"digest":"${D}/../x"}]}`,
    'only a prototype': '{"__proto__":{"manifests":[]}}',
    'a prototype for an entry': `{"manifests":[{"__proto__":{"digest":"${D}"}}]}`,
  };
  for (const [what, body] of Object.entries(broken)) {
    it(`of ${what} is malformed`, () => {
      expect(() => parseManifest(typeof body === 'string' ? Buffer.from(body) : body, INDEX))
        .to.throw(ImageError)
        .that.includes({ code: 'malformed', temporary: false });
    });
  }

  const refused: [what: string, body: unknown, type: string, code: string, message: RegExp][] = [
    ['no JSON', '{', INDEX, 'malformed', /JSON/],
    ['a list', [], INDEX, 'malformed', /JSON/],
    ['empty', {}, INDEX, 'malformed', /neither/],
    ['both', { manifests: [], layers: [], config }, INDEX, 'malformed', /both/],
    ['an image said to be an index', { config, layers: [] }, INDEX, 'malformed', /claims/],
    ['an index that calls itself an image', { mediaType: IMAGE, manifests: [] }, INDEX, 'malformed', /claims/],
    ['an image without a digest', { config: { digest: 'x' }, layers: [] }, IMAGE, 'malformed', /config/],
    ['an index with a bad digest', { manifests: [{ digest: '../x' }] }, INDEX, 'malformed', /digest/],
    ['an index without a list', { manifests: {} }, INDEX, 'malformed', /list/],
    ['1,001 entries', { manifests: Array(1001).fill(entry('linux', 'amd64')) }, INDEX, 'too-large', /1001/],
    [
      'schema 1',
      { schemaVersion: 1, fsLayers: [] },
      'application/vnd.docker.distribution.manifest.v1+prettyjws',
      'unsupported',
      /schema 1/,
    ],
    ['schema 1 as text', { schemaVersion: 1 }, 'text/plain', 'unsupported', /schema 1/],
    [
      'a Helm chart',
      { config: { ...config, mediaType: 'application/vnd.cncf.helm.config.v1+json' }, layers: [] },
      IMAGE,
      'unsupported',
      /artifact of type "application\/vnd.cncf.helm/,
    ],
    [
      'an artifact',
      {
        artifactType: 'application/x-sbom',
        config: { ...config, mediaType: 'application/vnd.oci.empty.v1+json' },
        layers: [],
      },
      IMAGE,
      'unsupported',
      /x-sbom/,
    ],
  ];
  for (const [what, body, type, code, message] of refused) {
    it(`that is ${what} is ${code}`, () => {
      expect(() => parseManifest(bytes(body), type))
        .to.throw(ImageError, message)
        .that.includes({ code, temporary: false });
    });
  }

  it('of more than 4 MiB is too large', () => {
    expect(() => parseManifest(new Uint8Array(4 * 1024 * 1024 + 1), INDEX))
      .to.throw(ImageError)
      .that.includes({ code: 'too-large' });
  });
});

describe('a config blob', () => {
  const rows: [body: unknown, expected: object | string][] = [
    [
      { architecture: 'arm64', os: 'linux', variant: 'v8' },
      { os: 'linux', architecture: 'arm64', variant: 'v8' },
    ],
    [{ architecture: 'x86_64' }, { os: 'linux', architecture: 'amd64' }],
    [{ os: 'linux' }, 'malformed'],
    ['nope', 'malformed'],
    [{ architecture: 'unknown', os: 'unknown' }, 'unsupported'],
    [{ architecture: 'a b', os: 'linux' }, 'unsupported'],
  ];
  for (const [body, expected] of rows) {
    it(`${JSON.stringify(body)} is ${JSON.stringify(expected)}`, () => {
      if (typeof expected === 'object') expect(parseImageConfig(bytes(body))).to.deep.equal(expected);
      else
        expect(() => parseImageConfig(bytes(body)))
          .to.throw(ImageError)
          .that.includes({ code: expected });
    });
  }
});
