import { expect } from 'chai';
import { createStore, type Stored } from '../../../src/kube/watch/collection.ts';

type Row = readonly [what: string, before: Stored, after: Stored, kept: 'before' | 'after'];
const of = (uid: string, resourceVersion: string): Stored => ({ uid, resourceVersion });

describe('the store', () => {
  const rows: readonly Row[] = [
    ['a newer version', of('u', '9'), of('u', '10'), 'after'],
    ['the same version', of('u', '10'), of('u', '10'), 'after'],
    ['an older version of the same object', of('u', '10'), of('u', '9'), 'before'],
    ['an older version, shorter', of('u', '1000'), of('u', '999'), 'before'],
    ['another object of the same name', of('u', '10'), of('v', '9'), 'after'],
    ['a version that is not a number', of('u', '10'), of('u', 'x'), 'after'],
  ];
  for (const [what, before, after, kept] of rows) {
    it(`keeps ${kept === 'after' ? '' : 'what it has over '}${what}`, () => {
      const store = createStore<Stored>();
      store.put('k', before);
      const put = store.put('k', after);
      expect(store.get('k')).to.equal(kept === 'after' ? after : before);
      expect(put).to.deep.equal(kept === 'after' ? { now: after, before } : 'stale');
    });
  }
});
