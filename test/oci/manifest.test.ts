import { expect } from 'chai';
import { ImageError } from '../../src/oci/errors.ts';
import { parseImageConfig, parseManifest } from '../../src/oci/manifest.ts';
import { CONFIG, IMAGE, INDEX, sha256 } from './server.ts';

const LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const SCHEMA1 = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
const SCHEMA2 = 'application/vnd.docker.distribution.manifest.v2+json';
const D = sha256('x');
const config = { mediaType: CONFIG, digest: D, size: 1 };
/** An image whose config has this type. */
const image = (mediaType: string, more = {}): object => ({ ...more, config: { ...config, mediaType }, layers: [] });
const entry = (os: string, architecture: string, more: object = {}): object => ({
  mediaType: IMAGE,
  digest: D,
  size: 1,
  platform: { os, architecture, ...more },
});
const stated = (os: string, architecture: string, variant = '', hasFeatures = false) => {
  return { os, architecture, variant, hasFeatures };
};
const bytes = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

describe('a manifest', () => {
  const entries: [what: string, value: unknown, expected: object][] = [
    ['a platform', entry('linux', 'arm', { variant: 'v6' }), { platform: stated('linux', 'arm', 'v6') }],
    ['another spelling', entry('Linux', 'x86_64'), { platform: stated('Linux', 'x86_64') }],
    ['an empty platform', { ...entry('', ''), platform: {} }, { platform: stated('', '') }],
    ['no platform', { mediaType: IMAGE, digest: D }, { kind: 'image' }],
    ['null as its platform', { mediaType: IMAGE, digest: D, platform: null }, { kind: 'image' }],
    ['features', entry('linux', 'amd64', { 'os.features': ['x'] }), { platform: stated('linux', 'amd64', '', true) }],
    ['no features', entry('linux', 'amd64', { 'os.features': [] }), { platform: stated('linux', 'amd64') }],
    [
      'names in other cases, as Go reads them',
      { MediaType: IMAGE, Digest: D, Platform: { OS: 'linux', Architecture: 'amd64' } },
      { kind: 'image', digest: D, platform: stated('linux', 'amd64') },
    ],
    ['the type of a nested index', { mediaType: LIST, digest: D }, { kind: 'index' }],
    ['another type', { mediaType: 'application/x', digest: D }, { kind: 'other', mediaType: 'application/x' }],
    ['no type', { digest: D }, { kind: 'untyped' }],
    [
      'the mark of an attestation',
      { ...entry('linux', 'amd64'), annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } },
      { isAttestation: true },
    ],
    [
      'the mark of zstd',
      { ...entry('linux', 'amd64'), annotations: { 'io.github.containers.compression.zstd': 'true' } },
      { isZstd: true },
    ],
  ];
  for (const [what, value, expected] of entries) {
    it(`that is an index has an entry with ${what}`, () => {
      const parsed = parseManifest(bytes({ schemaVersion: 2, manifests: [value] }), INDEX);
      if (parsed.kind !== 'index') return expect.fail(parsed.kind);
      expect(parsed.entries).to.have.length(1);
      expect(parsed.entries[0]).to.deep.include(expected);
      if (!('platform' in expected))
        expect(parsed.entries[0]?.platform === undefined).to.equal(!what.startsWith('the mark'));
    });
  }

  it('that is an index says whether it is a list of Docker', () => {
    for (const mediaType of [LIST, INDEX, undefined]) {
      const parsed = parseManifest(bytes({ schemaVersion: 2, mediaType, manifests: [] }), mediaType);
      expect(parsed).to.include({ kind: 'index', isDockerList: mediaType === LIST });
    }
  });

  const accepted: [what: string, body: unknown, type: string | undefined, kind: string][] = [
    ['an OCI image', image(CONFIG, { schemaVersion: 2, mediaType: IMAGE }), IMAGE, 'image'],
    ['a Docker image', image(CONFIG, { mediaType: SCHEMA2 }), `${SCHEMA2}; charset=utf-8`, 'image'],
    ['an image of WebAssembly', image('application/vnd.wasm.config.v0+json'), IMAGE, 'image'],
    ['an index with its name in capitals', { MANIFESTS: [] }, undefined, 'index'],
    ['an image without a type', image(CONFIG, { schemaVersion: 2 }), 'application/json', 'image'],
    ['an image of 2016', image('application/octet-stream'), SCHEMA2, 'image'],
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
    ['schema 1', { schemaVersion: 1, fsLayers: [] }, SCHEMA1, 'unsupported', /schema 1/],
    ['schema 1 as text', { schemaVersion: 1 }, 'text/plain', 'unsupported', /schema 1/],
    ['a Helm chart', image('application/vnd.cncf.helm.config.v1+json'), IMAGE, 'unsupported', /vnd.cncf.helm/],
    ['an artifact', image('application/vnd.oci.empty.v1+json', { artifactType: 'sbom' }), IMAGE, 'unsupported', /sbom/],
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
  const amd64 = { platform: { os: 'linux', architecture: 'amd64' } };
  const labelled = (Labels: unknown) => ({ architecture: 'amd64', config: { Labels } });
  const rows: [body: unknown, expected: object | string][] = [
    [
      { architecture: 'arm64', os: 'linux', variant: 'v8' },
      { platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
    ],
    [{ OS: 'linux', Architecture: 'arm64' }, { platform: { os: 'linux', architecture: 'arm64' } }],
    [{ architecture: 'wasm', os: 'wasip1' }, { platform: { os: 'wasip1', architecture: 'wasm' } }],
    [{ architecture: 'x86_64' }, amd64],
    [labelled({ 'operators.operatorframework.io.bundle.manifests.v1': 'manifests/' }), { ...amd64, isBundle: true }],
    [labelled({ 'operators.operatorframework.io.bundle.mediatype.v1': 'registry+v1' }), { ...amd64, isBundle: true }],
    [labelled({ 'operators.operatorframework.io.index.configs.v1': '/configs' }), amd64],
    [labelled(['operators.operatorframework.io.bundle.manifests.v1']), amd64],
    [labelled(null), amd64],
    [{ architecture: 'amd64', config: null }, amd64],
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

describe('the fields of what a registry sends, however many there are', () => {
  const MANY = 10_000;
  const more = Object.fromEntries(Array.from({ length: MANY }, (_, at) => [`k${at}`, 'v']));
  const good = entry('linux', 'amd64');
  const index = (manifests: unknown): object => ({ schemaVersion: 2, manifests });

  /** Counts the names that are listed of all objects that are parsed meanwhile. */
  function listedBy(run: () => void): number {
    let count = 0;
    const watched = (_key: string, value: unknown): unknown =>
      typeof value !== 'object' || value === null
        ? value
        : new Proxy(value, {
            ownKeys(target) {
              const keys = Reflect.ownKeys(target);
              count += keys.length;
              return keys;
            },
          });
    const { parse } = JSON;
    JSON.parse = (text) => parse(text, watched);
    try {
      run();
    } finally {
      JSON.parse = parse;
    }
    return count;
  }

  const rows: [what: string, value: object, type?: string][] = [
    ['an index', { ...index([good]), ...more }, INDEX],
    ['an entry', index([{ ...good, ...more }]), INDEX],
    ['a platform', index([entry('linux', 'amd64', more)]), INDEX],
    ['annotations', index([{ ...good, annotations: more }]), INDEX],
    ['a manifest', image(CONFIG, more), IMAGE],
    ['its config', { schemaVersion: 2, config: { ...config, ...more }, layers: [] }, IMAGE],
    ['a config blob', { architecture: 'arm64', os: 'linux', ...more }],
    ['its labels', { architecture: 'arm64', os: 'linux', config: { Labels: more, ...more } }],
  ];
  for (const [what, value, type] of rows) {
    it(`are gone through a few times in ${what}`, () => {
      const body = bytes(value);
      const read = () => void (type === undefined ? parseImageConfig(body) : parseManifest(body, type));
      expect(listedBy(read) / MANY).to.be.within(1, 3);
    });
  }
});
