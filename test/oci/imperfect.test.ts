import { expect } from 'chai';
import {
  ANYONE,
  CONFIG,
  failureOf,
  type Harness,
  IMAGE,
  INDEX,
  never,
  reply,
  type ScriptedServer,
  sha256,
  startResolver,
  startServer,
  stopAfterEach,
} from './server.ts';

const SCHEMA1 = 'application/vnd.docker.distribution.manifest.v1+prettyjws';

describe('an image that is not perfect', () => {
  let server: ScriptedServer;
  let harness: Harness;
  beforeEach(async () => {
    server = await startServer();
    harness = startResolver([server.host]);
  });
  stopAfterEach();

  const resolve = (rest = 'app:v1') => harness.resolver.resolve(`${server.host}/${rest}`, ANYONE, never);
  const failure = (rest?: string) => failureOf(resolve(rest));
  const good = { mediaType: IMAGE, digest: sha256('amd64'), size: 1, platform: { os: 'linux', architecture: 'amd64' } };
  /** An index of these entries as `app:v1`. */
  const put = (...manifests: unknown[]): string =>
    server.put('app', 'manifests', { schemaVersion: 2, mediaType: INDEX, manifests }, { tag: 'v1' });
  const entryOf = (digest: string): object => ({ mediaType: IMAGE, digest, size: 1 });
  const putBody = (body: unknown): object => entryOf(server.put('app', 'manifests', body, { type: IMAGE }));
  function putConfigured(config: unknown): object {
    const digest = server.put('app', 'blobs', config);
    return putBody({ schemaVersion: 2, mediaType: IMAGE, config: { mediaType: CONFIG, digest, size: 1 }, layers: [] });
  }
  function putAnswer(status: number): object {
    const digest = sha256(`answers ${status}`);
    server.on(`/v2/app/manifests/${digest}`, reply(status));
    return entryOf(digest);
  }

  describe('because it is of schema 1 and signed', () => {
    const body = JSON.stringify({ schemaVersion: 1, name: 'app', fsLayers: [], signatures: [{ signature: 'x' }] });
    // The digest is computed over the body without its signatures.
    const published = sha256('the payload');
    for (const [by, rest] of [
      ['by its tag', 'app:v1'],
      ['by its digest', `app@${published}`],
    ] as const) {
      for (const type of [SCHEMA1, 'application/json']) {
        it(`is named as such ${by}, sent as ${type}`, async () => {
          server.on('*', reply(200, { 'content-type': type, 'docker-content-digest': published }, body));
          const error = await failure(rest);
          expect(error).to.include({ code: 'unsupported', temporary: false });
          expect(error.message).to.include('Docker schema 1');
        });
      }
    }

    it('is not accepted as anything if its digest is wrong', async () => {
      const other = JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [good] });
      server.on('*', reply(200, { 'content-type': INDEX, 'docker-content-digest': published }, other));
      expect(await failure()).to.include({ code: 'malformed' });
    });
  });

  type Entry = () => unknown;
  const bad: [what: string, entry: Entry, reason: RegExp, code: string][] = [
    [
      'with a digest of an unknown algorithm',
      () => ({ ...good, digest: `blake3:${'a'.repeat(64)}`, platform: { os: 'linux', architecture: 'arm64' } }),
      /^an entry without a digest that can be verified$/,
      'malformed',
    ],
    ['without a digest', () => ({ mediaType: IMAGE, size: 1 }), /without a digest/, 'malformed'],
    ['that is null', () => null, /without a digest/, 'malformed'],
    ['without an architecture', () => putConfigured({ os: 'linux' }), /config blob names no architecture/, 'malformed'],
    ['whose config is not JSON', () => putConfigured('nope'), /the config blob is not a JSON/, 'malformed'],
    ['that is not JSON', () => putBody('nope'), /the manifest is not a JSON object/, 'malformed'],
    [
      'that is an artifact of a draft',
      () => putBody({ mediaType: 'application/vnd.oci.artifact.manifest.v1+json', blobs: [] }),
      /contains neither/,
      'malformed',
    ],
    ['that is missing', () => entryOf(sha256('gone')), /^not in the registry$/, 'unsupported'],
    [
      'that is an artifact',
      () => putBody({ config: { mediaType: 'application/x', digest: sha256('x') }, layers: [] }),
      /^this is not an image but an artifact of type "application\/x"$/,
      'unsupported',
    ],
    ['that is refused', () => putAnswer(403), /answers 403 Forbidden for the manifest/, 'denied'],
    ['that answers 418', () => putAnswer(418), /answers 418/, 'unsupported'],
  ];
  for (const [what, entry, reason, code] of bad) {
    it(`because of an entry ${what} runs on what its other entries say`, async () => {
      put(entry(), good);
      const { platforms, skipped } = await resolve();
      expect(platforms).to.deep.equal([{ os: 'linux', architecture: 'amd64' }]);
      expect(skipped.map((each) => each.reason).join()).to.match(reason);
    });

    it(`because of an entry ${what}, and has no other, is an error`, async () => {
      put(entry());
      expect(await failure()).to.include({ code, temporary: false });
    });
  }

  const passing: [what: string, status: number, code: string][] = [
    ['is answered with 500', 500, 'unavailable'],
    ['is answered with 503', 503, 'unavailable'],
    ['takes too long', 408, 'timeout'],
    ['meets the rate limit', 429, 'rate-limited'],
  ];
  for (const [what, status, code] of passing) {
    it(`because of an entry that ${what} is asked again: that is not a verdict`, async () => {
      put(putAnswer(status), good);
      expect(await failure()).to.include({ code, temporary: true });
    });
  }

  it('because of an entry whose digest is wrong is an error: something changed it on the way', async () => {
    const digest = sha256('something else');
    server.on(`/v2/app/manifests/${digest}`, reply(200, { 'content-type': IMAGE }, '{"config":{}}'));
    put(entryOf(digest), good);
    expect(await failure()).to.include({ code: 'malformed' });
  });

  for (const [what, entry] of [
    ['lacks', () => entryOf(sha256('gone'))],
    ['refuses', () => putAnswer(403)],
  ] as const) {
    it(`because the registry ${what} an entry is known by its digest, too, and looked up again after a while`, async () => {
      const digest = put(entry(), good);
      const image = `${server.host}/app@${digest}`;
      await resolve(`app@${digest}`);
      expect(harness.known(image, ANYONE)?.platforms).to.have.length(1);
      const asked = server.asked.length;
      harness.resolver.look(image, ANYONE);
      expect(harness.resolver.pending()).to.equal(0);
      harness.advance(600_000);
      expect(harness.known(image, ANYONE)).to.equal(undefined);
      await resolve(`app@${digest}`);
      expect(server.asked.length).to.be.greaterThan(asked);
      // An outage does not remove what was known either.
      server.on('*', reply(503));
      server.on(`/v2/app/manifests/${digest}`, reply(503));
      harness.advance(600_000);
      await failure(`app@${digest}`);
      expect(harness.known(image, ANYONE)?.platforms).to.have.length(1);
    });
  }
});
