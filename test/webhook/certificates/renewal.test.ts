import { expect } from 'chai';
import { dueNow, isSettled, type RenewalDue } from '../../../src/webhook/certificates/renewal.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The moment of every plan. */
const NOW = Date.UTC(2030, 0, 1);

/** A validity of this many days, of which so many are over; negative: it begins in so many days. */
const life = (days: number, over: number) => ({ notBefore: NOW - over * DAY, notAfter: NOW + (days - over) * DAY });

const GOOD: Parameters<typeof dueNow>[0] & { readonly lacks?: boolean } = {
  serving: life(90, 10),
  authority: life(900, 10),
};

describe("the renewal of archaware's certificates", () => {
  const rows: [given: string, kept: typeof GOOD, due: RenewalDue][] = [
    ['nothing at all', { serving: undefined, authority: undefined }, 'authority'],
    ['nothing but what has expired', { serving: life(90, 91), authority: life(900, 901) }, 'authority'],
    ['nothing but what is to come', { serving: life(90, -1), authority: life(900, -1) }, 'authority'],
    ['all good', GOOD, 'nothing'],
    ['a certificate just before two thirds of its life', { ...GOOD, serving: life(90, 59.9) }, 'nothing'],
    ['a certificate at two thirds of its life', { ...GOOD, serving: life(90, 60) }, 'serving'],
    ['a certificate that has expired', { ...GOOD, serving: life(90, 90) }, 'serving'],
    ['a certificate of days to come', { ...GOOD, serving: life(90, -1) }, 'serving'],
    ['no certificate', { ...GOOD, serving: undefined }, 'serving'],
    ['a certificate without a name that is wanted', { ...GOOD, lacks: true }, 'serving'],
    ['an authority just before two thirds of its life', { ...GOOD, authority: life(900, 599) }, 'nothing'],
    ['an authority at two thirds of its life', { ...GOOD, authority: life(900, 600) }, 'authority'],
    ['an old authority, and no certificate', { serving: undefined, authority: life(900, 600) }, 'serving'],
    ['an old authority, and an old certificate', { serving: life(90, 60), authority: life(900, 600) }, 'serving'],
    ['no authority under a good certificate', { ...GOOD, authority: undefined }, 'authority'],
    ['an expired authority under a good certificate', { ...GOOD, authority: life(900, 900) }, 'authority'],
  ];
  for (const [given, { lacks = false, ...kept }, due] of rows) {
    it(`${given}: ${due}`, () => expect(dueNow(kept, lacks, NOW)).to.equal(due));
  }

  it('lets a new authority settle for a minute', () => {
    const options = { lifetimeMs: 90 * DAY, now: NOW };
    const made = (msAgo: number) => ({ notBefore: NOW - HOUR - msAgo, notAfter: NOW + DAY });
    expect([isSettled(made(59_999), options), isSettled(made(60_000), options)]).to.deep.equal([false, true]);
  });
});
