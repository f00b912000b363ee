import { expect } from 'chai';
import type { LookupResult } from '../../src/analysis/lookup-results.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { BOTH, explained } from '../analysis/explain/explained.ts';
import { template } from './objects.ts';

const volume = (reference: unknown, more: JsonObject = {}, name = 'data') => ({ name, image: { reference, ...more } });
const V = { image: 'v', pullPolicy: '', volume: 'data' };

describe('the images of volumes', () => {
  const rows: readonly [given: string, volumes: unknown, expected: unknown][] = [
    ['are read after those of containers', [volume('v')], [V]],
    ['have a pull policy', [volume('v', { pullPolicy: 'Always' })], [{ ...V, pullPolicy: 'Always' }]],
    ['may be empty in a template', [volume(''), volume(undefined)], []],
    ['are of image volumes alone', [{ name: 'a', emptyDir: {} }, { name: 'b', image: 'x' }, 5], []],
    ['count once', [volume('v'), volume('v', {}, 'other')], [V]],
    ['add nothing to the same image of a container', [volume('a')], []],
    ['may have no name', [{ image: { reference: 'v' } }], [{ ...V, volume: '' }]],
    [
      'have a name that is cut if it is too long',
      [volume('v', {}, 'n'.repeat(100))],
      [{ ...V, volume: 'n'.repeat(63) }],
    ],
    ['are no list', 'v', []],
  ];
  for (const [given, volumes, expected] of rows) {
    it(given, () => {
      expect(template(['a'], { volumes }).images.slice(1)).to.deep.equal(expected);
    });
  }
});

describe('an explanation of image volumes', () => {
  const platforms = [{ os: 'linux', architecture: 'arm64' }];
  const denied = { error: { code: 'unsupported', message: 'an artifact', registry: 'r' } };
  const rows: readonly [given: string, v: LookupResult, expected: object, by: readonly string[]][] = [
    ['an index', { platforms, skipped: [], isIndex: true }, { platforms }, ['a', 'volume data: v']],
    ['a single manifest', { platforms, skipped: [], isIndex: false }, { platforms, anywhere: 'volume' }, ['a']],
    ['an artifact', { ...denied, isSingleManifest: true }, { platforms: [], anywhere: 'volume' }, ['a']],
    ['a failure', denied, { platforms: [], ...denied }, ['a']],
  ];
  for (const [given, v, expected, by] of rows) {
    it(`says of ${given} what it is and whether it narrows`, () => {
      const spec = { containers: [{ name: 'app', image: 'a' }], volumes: [volume('v')] };
      const { images, intersection } = explained({ images: { a: BOTH, v }, spec });
      expect(images[1]).to.deep.equal({ image: 'v', volume: 'data', skipped: [], ...expected });
      expect(intersection.map((step) => step.by)).to.deep.equal(by);
    });
  }
});
