import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { createRecords } from '../../src/controllers/memory.ts';
import { createContention } from '../../src/controllers/refusals.ts';
import { createHandClock } from './hand-clock.ts';

const MINUTE = 60_000;
const NOTHING = { waitMs: 0, began: false };
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node', uid: 'u' };

/** A contention, used as a reconciler does: check, then write if allowed. */
function quarrel() {
  const clock = createHandClock();
  let reported = 0;
  const contention = createContention({ report: () => void reported++ }, clock);
  const records = createRecords();
  /** `began`: whether the Event was written. */
  const check = (key = 'node', intent = 'taint') => {
    const before = reported;
    const waitMs = contention.waitMs(records.of(key, 'u'), intent, NODE, { action: 'Tainting', note: 'undone' });
    return { waitMs, began: reported > before };
  };
  const write = (key = 'node', intent = 'taint') => {
    const checked = check(key, intent);
    if (checked.waitMs === 0) contention.wrote(records.of(key, 'u'), intent);
    return checked;
  };
  return { clock, records, check, write, count: () => contention.count(records.all.values()) };
}

/** Writes that are undone at once, until the contention stops one. */
function untilRefused(write: () => { waitMs: number; began: boolean }) {
  for (let writes = 0; writes < 10; writes++) {
    const checked = write();
    if (checked.waitMs > 0) return { writes, ...checked };
  }
  throw new Error('never refused');
}

describe('a write that another writer undoes', () => {
  it('is written three times in ten minutes, and then no more, which is reported once', async () => {
    const { clock, write } = quarrel();
    expect([write(), write(), write()]).to.deep.equal([NOTHING, NOTHING, NOTHING]);
    expect(write()).to.deep.equal({ waitMs: 10 * MINUTE, began: true });
    await clock.advance(4 * MINUTE);
    expect(write()).to.deep.equal({ waitMs: 6 * MINUTE, began: false });
  });

  it('is tried again after ten minutes, and waits twice as long each time', async () => {
    const { clock, write } = quarrel();
    const waits: number[] = [];
    for (let round = 0; round < 5; round++) {
      const { waitMs } = untilRefused(write);
      waits.push(waitMs / MINUTE);
      await clock.advance(waitMs);
    }
    expect(waits).to.deep.equal([10, 20, 40, 80, 160]);
  });

  const later: [what: string, afterMs: number, writes: number, waitMs: number][] = [
    ['is contested again at once by one more undone write, even later', 15 * MINUTE, 0, 20 * MINUTE],
    ['is allowed three times again if not undone for twice the last wait', 20 * MINUTE + 1, 3, 10 * MINUTE],
  ];
  for (const [what, afterMs, writes, waitMs] of later) {
    it(what, async () => {
      const { clock, write } = quarrel();
      await clock.advance(untilRefused(write).waitMs);
      expect(write()).to.deep.equal(NOTHING);
      await clock.advance(afterMs);
      expect(untilRefused(write)).to.deep.equal({ writes, waitMs, began: true });
    });
  }

  it('waits a day at most', async () => {
    const { clock, write } = quarrel();
    for (let round = 0; round < 40; round++) await clock.advance(untilRefused(write).waitMs);
    expect(untilRefused(write).waitMs).to.equal(24 * 60 * MINUTE);
  });

  it('is not contested if it is undone more rarely', async () => {
    const { clock, write } = quarrel();
    for (let round = 0; round < 20; round++) {
      expect(write()).to.deep.equal(NOTHING);
      await clock.advance(5 * MINUTE);
    }
  });

  it('stops for that object and that intent only', () => {
    const { write } = quarrel();
    untilRefused(write);
    expect(write('other')).to.deep.equal(NOTHING);
    expect(write('node', 'other')).to.deep.equal(NOTHING);
  });

  it('is forgotten with the object', () => {
    const { records, write, count } = quarrel();
    untilRefused(write);
    expect(count()).to.equal(1);
    records.forget('node');
    expect([write(), count()]).to.deep.equal([NOTHING, 0]);
  });

  it('takes little memory, however long it is: the record of a template names all its images', () => {
    const { write } = quarrel();
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 1_000; index += 1) write(`shop/${index}`, Buffer.alloc(32_000, `${index} `).toString());
    collect();
    expect(process.memoryUsage().heapUsed - before).to.be.below(4_000_000);
    expect(write('shop/7', 'another')).to.deep.equal(NOTHING);
  });

  it('counts only writes that were sent', () => {
    const { check } = quarrel();
    for (let round = 0; round < 10; round++) expect(check()).to.deep.equal(NOTHING);
  });
});
