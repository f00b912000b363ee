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
});
