import { expect } from 'chai';
import { type NextOfTurn, nextOfTurn } from '../../../src/placement/clean/owner-turns.ts';

describe('the turn of an owner', () => {
  const remove = (uid: string): NextOfTurn => ({ kind: 'remove', uid });
  const rows: [what: string, wanted: number, waits: boolean, pods: string, now: string, next: NextOfTurn][] = [
    // `now`: the owner's pods, a ready one with a +.
    ['begins with its first pod', 3, false, 'a b c', 'a+ b+ c+', remove('a')],
    ['waits while a pod goes', 3, true, 'a b c', 'b+ c+', { kind: 'wait', ready: 2, wanted: 3 }],
    ['waits while the successor starts', 3, true, 'a b c', 'b+ c+ x', { kind: 'wait', ready: 2, wanted: 3 }],
    ['goes on when the successor is ready', 3, true, 'a b c', 'b+ c+ x+', remove('b')],
    ['waits for the last successor', 3, true, 'a b c', 'x+ y+', { kind: 'wait', ready: 2, wanted: 3 }],
    [
      'waits for the successor of an only pod, which is not there yet',
      1,
      true,
      'a',
      '',
      { kind: 'wait', ready: 0, wanted: 1 },
    ],
    ['is over when all are ready again', 3, true, 'a b c', 'x+ y+ z+', { kind: 'over' }],
    ['is over when the pods went by themselves', 1, false, 'a', 'x', { kind: 'over' }],
    ['is over when the owner was scaled to nothing', 0, true, 'a b c', 'a+', { kind: 'over' }],
    [
      'leaves an owner that lacks a pod before the turn begins',
      3,
      false,
      'a b',
      'a+ b+',
      { kind: 'below', ready: 2, wanted: 3 },
    ],
    ['leaves an owner with a pod that is not ready', 2, false, 'a b', 'a+ b', { kind: 'below', ready: 1, wanted: 2 }],
    ['leaves an owner whose pods all crash', 2, false, 'a b', 'a b', { kind: 'below', ready: 0, wanted: 2 }],
    ['does not wait any longer where the owner wants less', 2, true, 'b', 'b+ x+', remove('b')],
    ['waits where the owner wants more meanwhile', 4, true, 'b', 'b+ x+ y+', { kind: 'wait', ready: 3, wanted: 4 }],
    ['takes what is not ready first', 2, false, 'a b', 'a+ b x+', remove('b')],
    ['goes on where the owner has more than it wants', 1, false, 'a', 'a+ x+ y+', remove('a')],
    ['leaves pods that are not to go', 2, false, 'a', 'a+ other+', remove('a')],
  ];
  for (const [what, wanted, waits, pods, now, next] of rows) {
    it(what, () => {
      const seen = new Map(
        now
          .split(' ')
          .filter((text) => text !== '')
          .map((text) => [text.replace('+', ''), text.endsWith('+')]),
      );
      expect(nextOfTurn({ pods: pods.split(' '), wanted, waits }, seen)).to.deep.equal(next);
    });
  }
});
