import { expect } from 'chai';
import fc from 'fast-check';
import { reviews } from '../../hack/fuzz/reviews.ts';
import { inputsFor } from '../../hack/fuzz/texts.ts';

const SEED = 20_261_121;
/** The inputs of each kind, and how many at least must not be refused; `npm run fuzz -- reviews` tries many more. */
const KINDS: [kind: string, numRuns: number, taken: number][] = [
  ['valid', 40, 20],
  ['mutated', 20, 1],
  ['spliced', 20, 0],
  ['pieces', 30, 0],
  ['raw', 30, 0],
];

describe('malformed AdmissionReviews', () => {
  for (const [kind, numRuns, atLeast] of KINDS) {
    it(`are answered or refused: ${numRuns} ${kind} ones`, () => {
      const inputs = inputsFor(reviews)[kind];
      if (inputs === undefined) throw new Error(`no inputs are ${kind}`);
      let taken = 0;
      const property = fc.property(inputs, (text) => {
        if (reviews.run(text)) taken += 1;
      });
      fc.assert(property, { seed: SEED, numRuns, endOnFailure: true });
      expect(taken).to.be.at.least(atLeast);
    });
  }
});
