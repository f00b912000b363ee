import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Point, trendOf } from '../hack/soak/trend.ts';

const FLOOR = { of: 'floor', least: 4, part: 0.05 } as const;
const MIDDLE = { of: 'middle', least: 3, part: 0.1 } as const;
/** A sample every five seconds for an hour. */
const hour = (value: (seconds: number) => number): Point[] =>
  Array.from({ length: 720 }, (_, index) => [index * 5, value(index * 5)]);
/** A heap of 40 MiB that fills by 30 MiB and is collected every 50 seconds. */
const sawtooth = (seconds: number) => 40 + 30 * ((seconds % 50) / 50);

describe('the line through the samples of a soak', () => {
  const rows: readonly [what: string, points: Point[], tolerance: typeof FLOOR | typeof MIDDLE, grows: boolean][] = [
    ['a heap that is collected', hour(sawtooth), FLOOR, false],
    ['a heap whose floor rises by 10 MiB in an hour', hour((s) => sawtooth(s) + s / 360), FLOOR, true],
    ['memory that falls', hour((s) => 120 - s / 100), FLOOR, false],
    ['a rise that is small for its size', hour((s) => 200 + s / 900), FLOOR, false],
    ['sockets that come and go', hour((s) => 20 + (s % 300 === 0 ? 8 : 0)), MIDDLE, false],
    ['a socket that is lost every ten minutes', hour((s) => 20 + Math.floor(s / 600)), MIDDLE, true],
    ['a single peak at the end', hour((s) => (s > 3500 ? 90 : 20)), MIDDLE, false],
  ];
  for (const [what, points, tolerance, grows] of rows) {
    it(`${grows ? 'grows with' : 'is flat for'} ${what}`, () => {
      expect(trendOf(points, tolerance).grows).to.equal(grows);
    });
  }

  it('gives start, end and slope', () => {
    const { start, end, perHour } = trendOf(
      hour((seconds) => 100 + seconds / 36),
      MIDDLE,
    );
    expect(perHour).to.be.closeTo(100, 1e-6);
    expect([start, end]).to.satisfy(([from, to]: number[]) => Math.abs((to ?? 0) - (from ?? 0) - 91.67) < 0.1);
  });

  it('needs more than one window', () => {
    expect(() => trendOf([[0, 1]], FLOOR)).to.throw('too few samples');
  });
});

describe('docs/reliability.md', () => {
  it('has the tables of the faults and of the soak', () => {
    const text = readFileSync(new URL('../docs/reliability.md', import.meta.url), 'utf8');
    const between = (name: string) =>
      new RegExp(`<!-- ${name}: begin -->\n([\\s\\S]*?)<!-- ${name}: end -->`).exec(text)?.[1] ?? '';
    expect(between('faults')).to.match(/^Seed \d+[\s\S]*\| API server killed \(SIGKILL\)/);
    expect(between('soak')).to.match(/minutes, seed \d+[\s\S]*\| leader \| memory of the process/);
  });
});
