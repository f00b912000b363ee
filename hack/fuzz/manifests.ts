import fc from 'fast-check';
import type { Platform } from '../../src/kit/platform.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { MANIFEST_ACCEPT, parseImageConfig, parseManifest, readPlatform } from '../../src/oci/manifest.ts';
import { isDigest } from '../../src/oci/reference.ts';
import { type Child, select } from '../../src/oci/selection.ts';
import { isShowable, must, refusing, type Target } from './target.ts';

const digest = fc
  .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 })
  .map((text) => `sha256:${text}`);
const type = fc.constantFrom(
  ...MANIFEST_ACCEPT.split(', '),
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.distribution.manifest.v1+json',
  'text/plain; charset=utf-8',
);
const odd = fc.oneof(fc.jsonValue(), fc.constantFrom('unknown', 'a\nb', 'x'.repeat(100), '__proto__'));
/** Usually the valid value, and sometimes any other. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary, weight: 60 }, { arbitrary: odd, weight: 1 });
const platform = fc.record(
  {
    os: mostly(fc.constantFrom('linux', 'windows', 'Linux', ' linux ', 'unknown')),
    architecture: mostly(fc.constantFrom('amd64', 'arm64', 'x86_64', 'arm', 'unknown', 'AARCH64')),
    variant: mostly(fc.constantFrom('v7', 'v8', '')),
    'os.version': mostly(fc.constant('10.0.17763.1')),
  },
  { requiredKeys: [] },
);
const descriptor = fc.record(
  {
    mediaType: mostly(type),
    digest: mostly(digest),
    size: mostly(fc.nat()),
    platform: mostly(platform),
    annotations: mostly(fc.dictionary(fc.string(), fc.string())),
    artifactType: odd,
  },
  { requiredKeys: ['digest'] },
);
const manifestValue = fc.oneof(
  fc.record(
    {
      schemaVersion: mostly(fc.constant(2)),
      mediaType: mostly(type),
      manifests: mostly(fc.array(descriptor, { maxLength: 12 })),
      artifactType: odd,
    },
    { requiredKeys: ['manifests'] },
  ),
  fc.record(
    {
      schemaVersion: mostly(fc.constant(2)),
      mediaType: mostly(type),
      config: mostly(descriptor),
      layers: mostly(fc.array(descriptor, { maxLength: 4 })),
      artifactType: odd,
    },
    { requiredKeys: ['config'] },
  ),
  fc.jsonValue(),
);
const JSON_PIECES = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '"',
  '\\u0000',
  '\\',
  'null',
  'true',
  '1e999',
  '{"a":',
  '"__proto__":{',
  '"digest":',
  '"platform":{',
];

function checkPlatform(read: Platform): void {
  must(/^[a-z0-9][a-z0-9_-]{0,31}$/.test(read.os) && read.os !== 'unknown', 'an os can be a label');
  must(
    /^[a-z0-9][a-z0-9_-]{0,31}$/.test(read.architecture) && read.architecture !== 'unknown',
    'an architecture can be a label',
  );
  must(
    read.variant === undefined || /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/.test(read.variant),
    'a variant can be a label',
  );
  must(JSON.stringify(readPlatform(read)) === JSON.stringify(read), 'a platform reads the same again');
}

/** Manifests and indexes; an input's first line is the `Content-Type`. */
export const manifest: Target = {
  name: 'manifest',
  valid: fc.tuple(type, manifestValue).map(([contentType, value]) => `${contentType}\n${JSON.stringify(value)}`),
  pieces: [
    ...JSON_PIECES,
    '"manifests":[',
    '"layers":[],',
    '"config":{}',
    '"mediaType":"application/vnd.oci.image.index.v1+json"',
    '{"digest":"sha256:',
    '\n',
  ],
  openings: ['\n', '\n{"manifests":[', '\n{"config":', 'application/json;'],
  run(text) {
    const newline = text.indexOf('\n');
    const body = Buffer.from(text.slice(newline + 1));
    const read = refusing([ImageError], () => parseManifest(body, newline < 0 ? undefined : text.slice(0, newline)));
    if (read === undefined) return false;
    if (read.kind === 'image') {
      must(isDigest(read.config), 'a config has a digest');
      return true;
    }
    const children = new Map<string, Child>();
    let selection = select(read, children);
    while (selection.kind === 'needs') {
      for (const { digest } of selection.children) {
        must(isDigest(digest) && !children.has(digest), 'a child has a digest, and is needed once');
        const platform = { os: 'linux', architecture: 'amd64' };
        children.set(digest, digest.endsWith('0') ? { kind: 'image', platform } : { kind: 'refused', reason: 'x' });
      }
      selection = select(read, children);
    }
    for (const each of selection.platforms) checkPlatform(each);
    for (const skipped of selection.skipped()) {
      must(isShowable(skipped.reason, 300), 'a reason can be shown');
      must(skipped.digest === undefined || isDigest(skipped.digest), 'what is skipped has a digest');
    }
    return true;
  },
};

/** Config blobs. */
export const config: Target = {
  name: 'config',
  valid: fc.oneof(platform, fc.jsonValue()).map((value) => JSON.stringify(value)),
  pieces: [
    ...JSON_PIECES,
    '"os":',
    '"linux"',
    '"architecture":',
    '"amd64"',
    '"variant":"v8"',
    '"config":',
    '"Labels":',
    '"operators.operatorframework.io.bundle.manifests.v1":',
  ],
  openings: ['{"architecture":"', '{"architecture":"amd64","os":"'],
  run(text) {
    const read = refusing([ImageError], () => parseImageConfig(Buffer.from(text)));
    if (read !== undefined) checkPlatform(read.platform);
    return read !== undefined;
  },
};
