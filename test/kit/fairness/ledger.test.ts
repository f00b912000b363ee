import { expect } from 'chai';
import { createLedger } from '../../../src/kit/fairness/ledger.ts';

describe('a ledger of bytes', () => {
  const LIMITS = { perGroup: 100, inAll: 150, always: 20 };
  /** Booked, one after the other: a key, its group, and bytes. */
  const rows: [given: string, booked: string, last: boolean, all: number][] = [
    ['as much as a group may have', 'a x 100', true, 100],
    ['more than a group may have', 'a x 101', false, 0],
    ['more than a group may have, in two parts', 'a x 60, b x 41', false, 60],
    ['less of a key than it had', 'a x 90, a x 10, b x 90', true, 100],
    ['more of a key than it may have: then it has none', 'a x 90, a x 101', false, 0],
    ['as much as all may have', 'a x 100, b y 50', true, 150],
    ['more than all may have', 'a x 100, b y 51', false, 100],
    ['what each group always gets', 'a x 100, b y 50, c z 20', true, 170],
    ['more than what each group always gets', 'a x 100, b y 50, c z 21', false, 150],
    ['a key that moves to another group', 'a x 100, a y 30, b x 100', true, 130],
  ];
  for (const [given, booked, last, all] of rows) {
    it(`${last ? 'has room for' : 'has no room for'} ${given}`, () => {
      const ledger = createLedger(LIMITS);
      const entries = booked.split(', ').map((each) => each.split(' '));
      const results = entries.map(([key = '', group = '', bytes]) => ledger.book(key, group, Number(bytes)));
      expect(results.at(-1)).to.equal(last);
      expect(ledger.bytes).to.equal(all);
      expect(ledger.has(entries.at(-1)?.[0] ?? '')).to.equal(last);
      for (const [key = ''] of entries) ledger.free(key);
      expect([ledger.bytes, ledger.size]).to.deep.equal([0, 0]);
    });
  }
});
