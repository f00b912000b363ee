import { expect } from 'chai';
import { milliseconds, parseDuration } from '../../src/kit/duration.ts';

describe('a duration', () => {
  const rows: [text: string, expected: number | undefined][] = [
    ['0s', 0],
    ['1ms', 1],
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['1h0m1s500ms', 3_601_500],
    ['1.5s', 1_500],
    ['0.1h', 360_000],
    ['', undefined],
    ['0', undefined],
    ['30', undefined],
    ['s', undefined],
    ['.5s', undefined],
    ['1.s', undefined],
    ['1..5s', undefined],
    ['-1s', undefined],
    ['+1s', undefined],
    ['1 s', undefined],
    [' 1s', undefined],
    ['1S', undefined],
    ['1d', undefined],
    ['1s1', undefined],
    ['1e3s', undefined],
    ['١s', undefined],
    ['1s\n', undefined],
    ['1s'.repeat(21), undefined],
  ];
  for (const [text, expected] of rows) {
    it(`${JSON.stringify(text)} is ${expected === undefined ? 'none' : `${expected} ms`}`, () => {
      expect(parseDuration(text)).to.equal(expected);
      if (expected === undefined) expect(() => milliseconds(text)).to.throw(Error, 'is not a valid duration');
      else expect(milliseconds(text)).to.equal(expected);
    });
  }

  it('of any length is refused at once', () => {
    expect(parseDuration(`${'1'.repeat(1_000_000)}x`)).to.equal(undefined);
  });
});
