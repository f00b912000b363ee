import { expect } from 'chai';
import { createShared } from '../../../src/placement/objects/equal-values.ts';

describe('values that are shared in memory', () => {
  it('are one for all with the same content', () => {
    const share = createShared(10);
    const first = share({ app: 'web' });
    expect(share({ app: 'web' })).to.equal(first);
    expect(share({ app: 'db' })).to.deep.equal({ app: 'db' });
    expect(share(['a'])).to.equal(share(['a']));
    expect(share(undefined)).to.equal(undefined);
  });

  it('are not mixed with texts that look like them', () => {
    const share = createShared(10);
    const list = share(['a']);
    expect(share('["a"]')).to.equal('["a"]');
    expect(share(['a'])).to.equal(list);
  });

  it('are kept up to a number, and up to a length, because authors of pods choose them', () => {
    const share = createShared(2, 20);
    const first = share(['a']);
    share(['b']);
    share(['c']);
    expect(share(['a'])).not.to.equal(first);
    const long = share(['a long text, which is not kept']);
    expect(share(['a long text, which is not kept'])).not.to.equal(long);
  });
});
