import { expect } from 'chai';
import { milliseconds, parseDuration, parseGoDuration } from '../../src/kit/duration.ts';

type Row = [text: string, expected: number | undefined];
const words = (text: string) => text.split(' ');
const isNone = (text: string): Row => [text, undefined];

describe('a duration', () => {
  const rows: Row[] = [
    ['0s', 0],
    ['1ms', 1],
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['1h0m1s500ms', 3_601_500],
    ['1.5s', 1_500],
    ['0.1h', 360_000],
    ...['', '1 s', ' 1s', '1s\n', '1s'.repeat(21), ...words('0 30 s .5s 1.s 1..5s -1s +1s 1S 1d 1s1 1e3s ١s')].map(
      isNone,
    ),
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
  const rows: Row[] = [
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
    ...['', '1h 5m', '9'.repeat(200), ...words('5 s .s 1d 1e3s Infinity')].map(isNone),
  ];
  for (const [text, expected] of rows) {
    it(`"${text.slice(0, 20)}" is ${expected} ms`, () => expect(parseGoDuration(text)).to.equal(expected));
  }
});
