import { expect } from 'chai';
import { milliseconds, parseDuration, parseGoDuration } from '../../src/kit/duration.ts';

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

describe('a duration of Go', () => {
  const rows: [text: string, expected: number | undefined][] = [
    ['12h0m5s', 43_205_000],
    ['0', 0],
    ['0s', 0],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['300ms', 300],
    ['1us2µs', 0.003],
    ['-2m', -120_000],
    ['+2m', 120_000],
    ['', undefined],
    ['5', undefined],
    ['s', undefined],
    ['.s', undefined],
    ['1d', undefined],
    ['1h 5m', undefined],
    ['1e3s', undefined],
    ['Infinity', undefined],
    ['9'.repeat(200), undefined],
  ];
  for (const [text, expected] of rows) {
    it(`"${text.slice(0, 20)}" is ${expected} ms`, () => expect(parseGoDuration(text)).to.equal(expected));
  }
});
