import { gunzipSync } from 'node:zlib';
import { assert } from 'chai';
import { type Content, digestOf } from '../../testimg/build.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';

type Named = { digest: string; size: number; mediaType: string };

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every descriptor that a manifest's body holds. */
function descriptorsOf(manifest: Content): Named[] {
  const body: unknown = JSON.parse(manifest.bytes.toString('utf8'));
  assert.isTrue(isRecord(body));
  if (!isRecord(body)) return [];
  return [body.config, body.layers, body.manifests]
    .flat()
    .flatMap((one) =>
      isRecord(one) &&
      typeof one.digest === 'string' &&
      typeof one.size === 'number' &&
      typeof one.mediaType === 'string'
        ? [{ digest: one.digest, size: one.size, mediaType: one.mediaType }]
        : [],
    );
}

describe('image fixtures', () => {
  it('have tags that are unique and valid', () => {
    const tags = FIXTURES.map(({ tag }) => tag);
    assert.deepEqual([...new Set(tags)], tags);
    for (const tag of tags) assert.match(tag, /^[\w][\w.-]{0,127}$/);
  });

  for (const { tag, build } of FIXTURES) {
    describe(tag, () => {
      it('is the same each time', () => {
        assert.deepEqual(build(), build());
      });

      it('has the digests that it says', () => {
        const { root, manifests, blobs } = build();
        for (const one of [...manifests, ...blobs]) assert.equal(one.digest, digestOf(one.bytes));
        assert.equal(manifests.at(-1)?.digest, root.digest, 'the root comes last');
      });

      it('points at what it holds, children before parents', () => {
        const { manifests, blobs } = build();
        const known = new Map(blobs.map((blob) => [blob.digest, blob]));
        for (const manifest of manifests) {
          for (const { digest, size } of descriptorsOf(manifest)) {
            const target = known.get(digest);
            if (target === undefined && tag === 'sparse') continue;
            assert.equal(target?.bytes.length, size, `${digest} is unknown or of another size`);
          }
          known.set(manifest.digest, manifest);
        }
      });

      it('has layers that can be unpacked', () => {
        for (const blob of build().blobs.filter(({ mediaType }) => /gzip$/.test(mediaType))) {
          const tar = gunzipSync(blob.bytes);
          assert.equal(tar.length % 512, 0);
          assert.equal(tar.subarray(257, 262).toString(), 'ustar');
        }
      });
    });
  }

  it('have the same digests on every machine and with every version of Node.js', () => {
    const multi = FIXTURES.find(({ tag }) => tag === 'multi');
    assert.equal(multi?.build().root.digest, 'sha256:a4e07e2b487981186ba815a59ca1b982b2aaeddf8cd0c3d28dd3b0cce8ee6971');
  });
});
