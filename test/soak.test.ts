import { expect } from 'chai';
import { type Point, trendOf } from '../hack/soak/trend.ts';
import { createTally, judgeWrites, mostWrites, type Sent } from '../hack/soak/writes.ts';

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
});

describe('the writes of a soak', () => {
  const US = 'system:serviceaccount:archaware:archaware-controller';
  const POD = '/api/v1/namespaces/shop/pods/web';
  const sent = (method: string, path: string, status = 200, more: Partial<Sent> = {}): Sent => ({
    method,
    path,
    status,
    user: US,
    ...more,
  });
  const counted = (...requests: Sent[]) => {
    const tally = createTally(US);
    tally.add(requests);
    return Object.fromEntries(tally.counts);
  };

  it('are counted by object, those that were refused apart', () => {
    const write = sent('PATCH', `${POD}?fieldManager=archaware-controller`);
    const event = (name: string) => ({ body: { regarding: { kind: 'Pod', namespace: 'shop', name } } });
    expect(
      counted(
        write,
        { ...write, status: 422 },
        sent('PATCH', `${POD}?fieldManager=archaware-controller&dryRun=All`),
        sent('POST', `${POD}/eviction`, 201),
        sent('POST', '/apis/events.k8s.io/v1/namespaces/shop/events?x=y', 201, event('web')),
        sent('POST', '/apis/events.k8s.io/v1/namespaces/shop/events', 201, event('web')),
      ),
    ).to.deep.equal({
      [POD]: { taken: 1, refused: 2 },
      [`${POD}/eviction`]: { taken: 1, refused: 0 },
      'Events about Pod shop/web': { taken: 2, refused: 0 },
    });
  });

  it('are not those of others, reads, and what keeps the Lease', () => {
    expect(
      counted(
        sent('PATCH', POD, 200, { user: 'admin' }),
        sent('GET', POD),
        sent('PUT', '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller'),
      ),
    ).to.deep.equal({});
  });

  const rows: readonly [what: string, minutes: number, changes: number, taken: number, refused: number][] = [
    ['nobody undoes', 10, 0, 4, 0],
    ['somebody undoes, as often as the pauses let it be written', 60, 0, 3 + 2 + 5, 0],
    ['its author changes, once for each change', 60, 240, 240 + 10, 0],
    ['admission refuses, with the pauses of the queue', 60, 0, 0, 2 * (12 + 120)],
  ];
  for (const [what, minutes, changes, taken, refused] of rows) {
    it(`end for an object that ${what}, and not with one write more`, () => {
      const judge = (written: { taken: number; refused: number }) =>
        judgeWrites(new Map([[POD, written]]), minutes, new Map([[POD, changes]])).map(({ isEndless }) => isEndless);
      const most = mostWrites(minutes, changes);
      expect(judge({ taken, refused })).to.deep.equal([false]);
      expect(judge({ taken: most.taken + 1, refused })).to.deep.equal([true]);
      expect(judge({ taken, refused: most.refused + 1 })).to.deep.equal([true]);
    });
  }
});
