import { expect } from 'chai';
import { createWriteWitness } from '../../../src/app/replica/write-witness.ts';

describe('the proof that the API server stores writes', () => {
  for (const [verb, resource, code, expected] of [
    ['update', 'leases', '200', true],
    ['patch', 'pods', '200', true],
    ['create', 'pods/eviction', '201', true],
    ['get', 'leases', '200', false],
    ['watch', 'pods', '200', false],
    ['patch', 'pods', '500', false],
    ['patch', 'pods', 'error', false],
    ['create', 'events', '201', false],
  ] as const) {
    it(`${verb} ${resource} answered with ${code}: ${expected ? 'is one' : 'is none'}`, () => {
      const { finished, lastMs } = createWriteWitness({ monotonic: () => 7 });
      finished({ verb, resource, code });
      expect(lastMs()).to.equal(expected ? 7 : undefined);
    });
  }
});
