import { expect } from 'chai';
import { newerTags } from '../../../src/cli/report/newer.ts';

describe('newer tags', () => {
  const rows: readonly (readonly [tag: string, tags: readonly string[], expected: readonly string[]])[] = [
    ['1.2.3', ['1.2.2', '1.2.3', '1.2.10', '1.3.0', '2.0.0'], ['1.2.10', '1.3.0', '2.0.0']],
    ['1.2.3', ['1.2.9', '1.2.10'], ['1.2.10']],
    ['v1.2', ['v1.3', '1.4', 'v2.0'], ['v1.3', 'v2.0']],
    ['1.27-alpine', ['1.29', '1.29-alpine', '1.30-slim'], ['1.29-alpine']],
    ['1.27', ['1.27.1', '1.28-rc1', '1.28'], ['1.28']],
    ['20240101', ['20250101', '20230101'], ['20250101']],
    ['latest', ['1.0', '2.0'], []],
    ['1.0', ['latest', 'sha256-abc', '', '1.0'], []],
    ['1.0', [`1.${'9'.repeat(400)}`], []],
    ['main-3f2a', ['main-4'], []],
  ];
  for (const [tag, tags, expected] of rows)
    it(`of ${tag} among ${tags.join(' ').slice(0, 60)} are ${expected.join(' ') || 'none'}`, () =>
      expect(newerTags(tag, tags)).to.deep.equal(expected));
});
