import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { isSame } from '../../../src/kit/json.ts';
import { asOurs, lacking, tolerates, tolerationsFor } from '../../../src/placement/patch/tolerations.ts';
import { toleration } from '../objects.ts';

const TAINT = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
const OURS = toleration('supported-arch=arm64:NoSchedule');

describe('a toleration', () => {
  const rows: [given: string, toleration: JsonObject, expected: boolean][] = [
    ['of our form', OURS, true],
    ['of another architecture', { ...OURS, value: 'amd64' }, false],
    ['of another key', { ...OURS, key: 'other' }, false],
    ['of another effect', { ...OURS, effect: 'NoExecute' }, false],
    ['of every effect', { key: OURS.key, operator: 'Equal', value: 'arm64' }, true],
    ['without an operator', { key: OURS.key, value: 'arm64', effect: 'NoSchedule' }, true],
    ['with the empty operator', { ...OURS, operator: '' }, true],
    ['of every value of the key', { key: OURS.key, operator: 'Exists' }, true],
    ['of every value of the key, of another effect', { key: OURS.key, operator: 'Exists', effect: 'NoExecute' }, false],
    ['of everything', { operator: 'Exists' }, true],
    ['of everything, with the empty key', { key: '', operator: 'Exists' }, true],
    ['without a key that does not exist either', { value: 'arm64' }, false],
    ['with an operator that nobody knows', { ...OURS, operator: 'Gt' }, false],
    ['with a value of another type', { ...OURS, value: 64 }, false],
    ['without a value', { key: OURS.key, operator: 'Equal' }, false],
  ];
  for (const [given, present, expected] of rows) {
    it(`${given} ${expected ? 'covers' : 'does not cover'} the taint, and ${expected ? 'none' : 'ours'} is added`, () => {
      expect(tolerates(present, TAINT)).to.equal(expected);
      expect(lacking([present], [OURS])).to.deep.equal(expected ? [] : [OURS]);
    });
  }

  it('without a value tolerates a taint without a value', () =>
    expect(tolerates({ key: 'gpu', effect: 'NoSchedule' }, { key: 'gpu', value: '', effect: 'NoSchedule' })).to.equal(
      true,
    ));
});

describe('what a pod lacks', () => {
  const AMD = toleration('supported-arch=amd64:NoSchedule');

  it('is written with one toleration for each architecture, in the order given', () => {
    expect(tolerationsFor(TAINT, ['arm64', 'amd64'])).to.deep.equal([OURS, AMD]);
    expect(tolerationsFor(TAINT, [])).to.deep.equal([]);
  });

  it('is only what no present toleration covers', () => {
    expect(lacking([AMD, { key: 'x', operator: 'Exists' }], [AMD, OURS])).to.deep.equal([OURS]);
    expect(lacking([], [AMD, OURS])).to.deep.equal([AMD, OURS]);
    expect(lacking([{ operator: 'Exists' }], [AMD, OURS])).to.deep.equal([]);
  });
});

describe("the form of archaware's tolerations", () => {
  const rows: [given: string, toleration: JsonObject, ours: boolean][] = [
    ['in any field order', { effect: 'NoSchedule', value: 'arm64', operator: 'Equal', key: 'supported-arch' }, true],
    ['has no more fields', { ...OURS, tolerationSeconds: 5 }, false],
    ['has no fewer', { key: OURS.key, value: 'arm64', effect: 'NoSchedule' }, false],
    ['has no other operator', { key: OURS.key, operator: 'Exists', value: 'arm64', effect: 'NoSchedule' }, false],
    ['has no other effect', { ...OURS, effect: 'NoExecute' }, false],
    ['has no other key', { ...OURS, key: 'other' }, false],
    ['has a text as its value', { ...OURS, value: 64 }, false],
  ];
  for (const [given, present, ours] of rows) {
    it(given, () => {
      expect(isSame(present, OURS)).to.equal(ours);
      expect(asOurs(present, TAINT)).to.deep.equal(ours ? OURS : undefined);
    });
  }

  it('may have any architecture', () => {
    const other = { ...OURS, value: 's390x' };
    expect(asOurs(other, TAINT)).to.deep.equal(other);
    expect(isSame(other, OURS)).to.equal(false);
  });
});
