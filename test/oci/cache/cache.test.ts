import { expect } from 'chai';
import { createImageCache, EVERYBODY, type ImageFacts, type TagEntry } from '../../../src/oci/cache.ts';

describe('the cache of images', () => {
  const found = (architecture: string): ImageFacts => ({
    platforms: [{ os: 'linux', architecture }],
    skipped: [],
    isIndex: false,
  });
  const tag = (digest: string): TagEntry => ({ digest, found: found('amd64'), checkedAt: 1, source: 'r.example.com' });

  it('keeps what was used last', () => {
    const cache = createImageCache(2);
    for (const name of ['a', 'b', 'c']) {
      cache.setDigest(name, found('arm64'));
      cache.setTag(`r/${name}:1`, EVERYBODY, tag(name));
      cache.digest('a');
      cache.tag('r/a:1', EVERYBODY);
    }
    const names = ['a', 'b', 'c'];
    expect(names.filter((name) => cache.digest(name) !== undefined)).to.deep.equal(['a', 'c']);
    expect(names.filter((name) => cache.tag(`r/${name}:1`, EVERYBODY) !== undefined)).to.deep.equal(['a', 'c']);
  });

  it('gives the tag of an owner to nobody else', () => {
    const cache = createImageCache(9);
    cache.setTag('r/x:1', 'Zm9v', tag('a'));
    expect([EVERYBODY, 'Zm9', 'Zm9v'].map((owner) => cache.tag('r/x:1', owner)?.digest)).to.deep.equal([
      undefined,
      undefined,
      'a',
    ]);
  });

  const numbers = (count: number): number[] => [...Array(count).keys()];

  it('takes a bounded number of bytes, however long the lists of its images are', () => {
    const cache = createImageCache(50_000);
    const skipped = numbers(1_000).map((at) => ({ digest: `sha256:${at}`.padEnd(71, '0'), reason: 'attestation' }));
    const name = (at: number) => `r.example.com/${'x'.repeat(700)}:${at}`;
    for (const at of numbers(1_000)) {
      cache.setDigest(`sha256:${at}`, { platforms: [], skipped, isIndex: true });
      cache.setTag(name(at), EVERYBODY, tag(`sha256:${at}`));
    }
    const kept = numbers(1_000).filter((at) => cache.digest(`sha256:${at}`) !== undefined);
    expect(kept.length).to.be.within(50, 200);
    expect(kept).to.contain(999);
    expect(numbers(1_000).every((at) => cache.tag(name(at), EVERYBODY) !== undefined)).to.equal(true);
  });

  it('has room for as many ordinary images as allowed', () => {
    const cache = createImageCache(20_000);
    const digest = (at: number) => `sha256:${String(at).padStart(64, '0')}`;
    const name = (at: number) => `registry.example.com/team/app:v${at}`;
    for (const at of numbers(20_000)) {
      cache.setDigest(digest(at), found('amd64'));
      cache.setTag(name(at), EVERYBODY, tag(digest(at)));
    }
    const kept = numbers(20_000).filter((at) => cache.digest(digest(at)) && cache.tag(name(at), EVERYBODY));
    expect(kept).to.have.length(20_000);
  });
});
