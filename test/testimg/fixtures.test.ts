import { assert } from 'chai';
import { FIXTURES } from '../../testimg/fixtures.ts';

/** That a registry takes them, with their digests and all that they point at, is shown by the end-to-end tests, which push them to a real one. */
describe('image fixtures', () => {
  it('have tags that are unique and valid', () => {
    const tags = FIXTURES.map(({ tag }) => tag);
    assert.deepEqual([...new Set(tags)], tags);
    for (const tag of tags) assert.match(tag, /^[\w][\w.-]{0,127}$/);
  });

  it('are the same each time, on every machine and with every version of Node.js', () => {
    for (const { tag, build } of FIXTURES) assert.deepEqual(build(), build(), tag);
    const multi = FIXTURES.find(({ tag }) => tag === 'multi');
    assert.equal(multi?.build().root.digest, 'sha256:a4e07e2b487981186ba815a59ca1b982b2aaeddf8cd0c3d28dd3b0cce8ee6971');
  });
});
