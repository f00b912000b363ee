import { expect } from 'chai';
import { editDistance, nearest } from '../../src/kit/nearest.ts';

describe('the distance between two names', () => {
  const rows: [one: string, other: string, expected: number][] = [
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['abc', 'abc', 0],
    ['abc', 'abd', 1],
    ['abc', 'ab', 1],
    ['abc', 'xabc', 1],
    ['abcd', 'badc', 3],
    ['kitten', 'sitting', 3],
  ];
  for (const [one, other, expected] of rows) {
    it(`${JSON.stringify(one)} and ${JSON.stringify(other)}: ${expected}`, () => {
      expect(editDistance(one, other)).to.equal(expected);
    });
  }
});

describe('the nearest name', () => {
  const known = ['taints.key', 'taints.effect', 'log.level'];
  const rows: [name: string, expected: string | undefined][] = [
    ['taints.key', 'taints.key'],
    ['taints.kye', 'taints.key'],
    ['TAINTS.KEY', 'taints.key'],
    ['loglevel', 'log.level'],
    ['x', undefined],
    ['something.else.altogether', undefined],
  ];
  for (const [name, expected] of rows) {
    it(`to ${name} is ${expected ?? 'none'}`, () => {
      expect(nearest(name, known)).to.equal(expected);
    });
  }
});
