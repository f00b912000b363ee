import { expect } from 'chai';
import { createShared } from '../../../src/kit/fairness/equal-values.ts';

describe('values that are shared in memory', () => {
  it('are one for all with the same content', () => {
    const share = createShared(10_000);
    const first = share({ app: 'web' });
    expect(share({ app: 'web' })).to.equal(first);
    expect(share({ app: 'db' })).to.deep.equal({ app: 'db' });
    expect(share(['a'])).to.equal(share(['a']));
    expect(share(undefined)).to.equal(undefined);
  });

  it('are not mixed with texts that look like them', () => {
    const share = createShared(10_000);
    const list = share(['a']);
    expect(share('["a"]')).to.equal('["a"]');
    expect(share(['a'])).to.equal(list);
  });

  it('are kept up to a number of bytes, and up to a length, because authors of pods choose them', () => {
    const share = createShared(1_000);
    const first = share(['a']);
    for (let index = 0; index < 20; index += 1) share([`b${index}`]);
    expect(share(['a'])).not.to.equal(first);
    const long = share(['a'.repeat(4_096)]);
    expect(share(['a'.repeat(4_096)])).not.to.equal(long);
  });

  it('stay the same as long as they are in use, however many others come and go', () => {
    const share = createShared(4_000);
    const first = share({ app: 'web' });
    for (let index = 0; index < 500; index += 1) {
      share({ app: `job-${index}` });
      expect(share({ app: 'web' })).to.equal(first);
    }
  });
});
