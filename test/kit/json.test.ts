import { expect } from 'chai';
import { fingerprintOf, isSame } from '../../src/kit/json.ts';

describe('the fingerprint and the comparison of a JSON value', () => {
  const value = { a: [1, { b: 'x' }], c: { d: true } };
  const alike: readonly [what: string, other: unknown][] = [
    ['fields in another order', { c: { d: true }, a: [1, { b: 'x' }] }],
    ['a field that is null, as older servers write it', { ...value, creationTimestamp: null }],
    ['an empty object', { ...value, securityContext: {} }],
    ['an empty list', { ...value, tolerations: [] }],
    ['an object of nothing but empty ones', { ...value, resources: { limits: {} } }],
    ['a field that is undefined', { ...value, e: undefined }],
  ];
  for (const [what, other] of alike) {
    it(`is the same with ${what}`, () => expect(fingerprintOf(other)).to.equal(fingerprintOf(value)));
  }

  const others: readonly [what: string, other: unknown][] = [
    ['another value', { ...value, c: { d: false } }],
    ['a field more', { ...value, e: 0 }],
    ['an empty text', { ...value, e: '' }],
    ['items in another order', { ...value, a: [{ b: 'x' }, 1] }],
    ['an empty item', { ...value, a: [1, { b: 'x' }, {}] }],
    ['the same texts in other places', { a: [1, { b: 'c' }], x: { d: true } }],
    ['a number as text', { ...value, a: ['1', { b: 'x' }] }],
    ['nothing', undefined],
  ];
  for (const [what, other] of others) {
    it(`differs with ${what}`, () => {
      expect(fingerprintOf(other)).to.not.equal(fingerprintOf(value));
      expect([isSame(value, other), isSame(other, value)]).to.deep.equal([false, false]);
    });
  }

  it('says of values that they are the same only if they have the same fields', () => {
    for (const [what, other] of alike) expect(isSame(value, other), what).to.equal(what === 'fields in another order');
    expect([isSame({ 0: 'a' }, ['a']), isSame(['a'], { 0: 'a' }), isSame([], [undefined])]).to.not.include(true);
  });

  it('is 32 hexadecimal digits, also of nothing', () => {
    for (const any of [value, undefined, null, {}]) expect(fingerprintOf(any)).to.match(/^[0-9a-f]{32}$/);
  });
});
