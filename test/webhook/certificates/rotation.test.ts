import { expect } from 'chai';
import { planRotation, type Rotation, type RotationStep } from '../../../src/webhook/certificates/rotation.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The moment of every plan. */
const NOW = Date.UTC(2030, 0, 1);

/** A validity of this many days, of which so many are over; negative: it begins in so many days. */
const life = (days: number, over: number) => ({ notBefore: NOW - over * DAY, notAfter: NOW + (days - over) * DAY });
const serving = (days: number, over: number, ...lacks: string[]) => ({ ...life(days, over), lacks });

const GOOD: Rotation = {
  serving: serving(90, 10),
  authority: life(900, 10),
  next: undefined,
  isTrusted: false,
  trustedSince: undefined,
  isDamaged: false,
};
/** The authority is old, and the next one is announced. */
const ANNOUNCED: Rotation = { ...GOOD, authority: life(900, 610), next: life(900, 1) };
const TRUSTED: Rotation = { ...ANNOUNCED, isTrusted: true, trustedSince: NOW - HOUR };
const WITHOUT_AUTHORITY: Rotation = { ...GOOD, authority: undefined, isDamaged: true };

describe("the rotation of archaware's certificates", () => {
  const rows: [given: string, rotation: Rotation, step: RotationStep][] = [
    ['nothing at all', { ...GOOD, serving: undefined, authority: undefined }, 'create'],
    ['nothing but what has expired', { ...GOOD, serving: serving(90, 91), authority: life(900, 901) }, 'create'],
    ['nothing but what is to come', { ...GOOD, serving: serving(90, -1), authority: life(900, -1) }, 'create'],
    ['nothing but the next authority', { ...ANNOUNCED, serving: undefined, authority: undefined }, 'switch'],
    ['all good', GOOD, 'keep'],
    ['a certificate just before two thirds of its life', { ...GOOD, serving: serving(90, 59.9) }, 'keep'],
    ['a certificate at two thirds of its life', { ...GOOD, serving: serving(90, 60) }, 'issue'],
    ['a certificate that has expired', { ...GOOD, serving: serving(90, 90) }, 'issue'],
    ['a certificate of days to come', { ...GOOD, serving: serving(90, -1) }, 'issue'],
    ['no certificate', { ...GOOD, serving: undefined }, 'issue'],
    ['a certificate without a name that is wanted', { ...GOOD, serving: serving(90, 1, 'other.svc') }, 'issue'],
    ['damage to what is not needed', { ...GOOD, isDamaged: true }, 'issue'],
    ['an authority just before two thirds of its life', { ...GOOD, authority: life(900, 599) }, 'keep'],
    ['an authority at two thirds of its life', { ...GOOD, authority: life(900, 600) }, 'announce'],
    ['an old authority, and no certificate', { ...GOOD, authority: life(900, 600), serving: undefined }, 'issue'],
    ['an old authority, and a next one that has expired', { ...ANNOUNCED, next: life(900, 901) }, 'announce'],
    ['a damaged authority under a good certificate', WITHOUT_AUTHORITY, 'announce'],
    ['an expired authority under a good certificate', { ...GOOD, authority: life(900, 900) }, 'announce'],
    ['a damaged authority, the next one announced', { ...WITHOUT_AUTHORITY, next: life(900, 0) }, 'keep'],
    ['an announced authority that callers do not trust yet', ANNOUNCED, 'keep'],
    ['the same, and an old certificate', { ...ANNOUNCED, serving: serving(90, 60) }, 'issue'],
    ['an announced authority that callers trust now', { ...ANNOUNCED, isTrusted: true }, 'note'],
    ['one that they trust, by a clock that was ahead', { ...TRUSTED, trustedSince: NOW + HOUR }, 'note'],
    ['one that they trusted, and do not any longer', { ...TRUSTED, isTrusted: false }, 'note'],
    ['one that they have trusted for almost an hour', { ...TRUSTED, trustedSince: NOW - HOUR + 1 }, 'keep'],
    ['one that they have trusted for an hour', TRUSTED, 'switch'],
    ['the same, under a damaged authority', { ...TRUSTED, authority: undefined, isDamaged: true }, 'switch'],
    ['one that nobody trusts, an hour and more before the end', { ...ANNOUNCED, authority: life(900, 899.9) }, 'keep'],
    ['one that nobody trusts, within an hour of the end', { ...ANNOUNCED, authority: life(900, 899.97) }, 'switch'],
    [
      'one that nobody trusts, within an hour of the end of a certificate without an authority',
      { ...ANNOUNCED, authority: undefined, serving: serving(90, 89.97) },
      'switch',
    ],
  ];
  for (const [given, rotation, step] of rows) {
    it(`${given}: ${step}`, () => expect(planRotation(rotation, NOW)).to.equal(step));
  }
});
