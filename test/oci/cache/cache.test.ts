import { expect } from 'chai';
import { createImageCache, EVERYBODY, type ImageFacts, type TagEntry } from '../../../src/oci/cache/cache.ts';

describe('the cache of images', () => {
  const found = (architecture: string): ImageFacts => ({
    platforms: [{ os: 'linux', architecture }],
    skipped: [],
    isIndex: false,
  });
  const tag = (digest: string): TagEntry => ({ digest, found: found('amd64'), checkedAt: 1, source: 'r.example.com' });

  it('offers for a file only what everybody may get, the most recently used first', () => {
    const cache = createImageCache(9);
    for (const digest of ['a', 'b', 'c']) cache.setDigest(digest, found('arm64'));
    cache.digest('a');
    cache.setTag('r/x:1', EVERYBODY, tag('a'));
    cache.setTag('r/secret:1', 'Zm9v', tag('b'));
    cache.setTag('r/y:1', EVERYBODY, tag('b'));
    cache.tag('r/x:1', EVERYBODY);
    expect(cache.sharedDigests(9).map(([digest]) => digest)).to.deep.equal(['a', 'c', 'b']);
    expect(cache.sharedDigests(2).map(([digest]) => digest)).to.deep.equal(['a', 'c']);
    expect(cache.sharedTags(9)).to.deep.equal([
      ['r/x:1', tag('a')],
      ['r/y:1', tag('b')],
    ]);
    expect(cache.sharedTags(1).map(([name]) => name)).to.deep.equal(['r/x:1']);
  });

  it('restores in the order of use, and keeps what it already knows', () => {
    const cache = createImageCache(3);
    cache.setDigest('a', found('s390x'));
    cache.setTag('r/a:1', EVERYBODY, tag('new'));
    cache.restore({
      digests: ['d', 'c', 'b', 'a'].map((digest) => [digest, found('arm64')] as const),
      tags: [
        ['r/b:1', tag('b')],
        ['r/a:1', tag('old')],
      ],
    });
    expect(cache.sharedDigests(9).map(([digest]) => digest)).to.deep.equal(['d', 'c', 'b']);
    expect(cache.tag('r/a:1', EVERYBODY)?.digest).to.equal('new');
    expect(cache.tag('r/b:1', EVERYBODY)?.digest).to.equal('b');
  });

  it('reports changes of what may be written to a file, and nothing else', () => {
    const cache = createImageCache(9);
    const reported: string[] = [];
    let doing = '';
    cache.onChange(() => reported.push(doing));
    const amd64 = found('amd64');
    const steps: [what: string, step: () => void][] = [
      ['a new digest', () => cache.setDigest('a', amd64)],
      ['the same once more', () => cache.setDigest('a', amd64)],
      ['a use', () => void cache.digest('a')],
      ["a pod's own tag", () => cache.setTag('r/x:1', 'Zm9v', tag('a'))],
      ["everybody's tag", () => cache.setTag('r/x:1', EVERYBODY, tag('a'))],
      ['what was restored', () => cache.restore({ digests: [['b', amd64]], tags: [['r/y:1', tag('b')]] })],
    ];
    for (const [what, step] of steps) {
      doing = what;
      step();
    }
    expect(reported).to.deep.equal(['a new digest', "everybody's tag"]);
  });

  it('takes a bounded number of bytes, however long the lists of its images are', () => {
    const cache = createImageCache(50_000);
    const skipped = Array.from({ length: 1_000 }, (_, at) => ({
      digest: `sha256:${at}`.padEnd(71, '0'),
      reason: 'attestation',
    }));
    for (let at = 0; at < 1_000; at += 1) {
      cache.setDigest(`sha256:${at}`, { platforms: [], skipped, isIndex: true });
      cache.setTag(`r.example.com/${'x'.repeat(700)}:${at}`, EVERYBODY, tag(`sha256:${at}`));
    }
    const kept = cache.sharedDigests(50_000);
    expect(kept.length).to.be.within(50, 200);
    expect(kept[0]?.[0]).to.equal('sha256:999');
    expect(cache.sharedTags(50_000)).to.have.length(1_000);
  });

  it('has room for as many ordinary images as allowed', () => {
    const cache = createImageCache(20_000);
    const digest = (at: number) => `sha256:${String(at).padStart(64, '0')}`;
    for (let at = 0; at < 20_000; at += 1) {
      cache.setDigest(digest(at), found('amd64'));
      cache.setTag(`registry.example.com/team/app:v${at}`, EVERYBODY, tag(digest(at)));
    }
    expect([cache.sharedDigests(50_000).length, cache.sharedTags(50_000).length]).to.deep.equal([20_000, 20_000]);
  });
});
