import { expect } from 'chai';
import { createEvictionLimits } from '../../../src/controllers/wrong-node/eviction-limits.ts';
import { createHandClock } from '../hand-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

describe('the limits of evictions', () => {
  it('allow one in ten seconds, over all owners', async () => {
    const clock = createHandClock();
    const limits = createEvictionLimits(clock);
    expect(limits.check('a')).to.equal(undefined);
    limits.evicted('a');
    expect(limits.check('b')).to.deep.equal({ of: 'all', waitMs: 10 * SECOND });
    await clock.advance(9 * SECOND);
    expect(limits.check('b')).to.deep.equal({ of: 'all', waitMs: SECOND });
    await clock.advance(SECOND);
    expect(limits.check('b')).to.equal(undefined);
  });

  it('allow three for one owner in ten minutes, and more for others', async () => {
    const clock = createHandClock();
    const limits = createEvictionLimits(clock);
    for (let count = 0; count < 3; count++) {
      expect(limits.check('a')).to.equal(undefined);
      limits.evicted('a');
      await clock.advance(MINUTE);
    }
    expect(limits.check('a')).to.deep.equal({ of: 'owner', waitMs: 7 * MINUTE });
    expect(limits.check('b')).to.equal(undefined);
    await clock.advance(7 * MINUTE);
    expect(limits.check('a')).to.equal(undefined);
    limits.evicted('a');
    await clock.advance(10 * SECOND);
    expect(limits.check('a')).to.deep.equal({ of: 'owner', waitMs: MINUTE - 10 * SECOND });
  });

  it('count evictions, not questions', () => {
    const limits = createEvictionLimits(createHandClock());
    for (let count = 0; count < 10; count++) expect(limits.check('a')).to.equal(undefined);
  });
});
