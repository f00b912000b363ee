import { expect } from 'chai';
import { type NextOfTurn, nextOfTurn } from '../../../src/placement/clean/turns.ts';

describe('the turn of an owner', () => {
  const remove = (uid: string): NextOfTurn => ({ kind: 'remove', uid });
  const rows: [what: string, target: number, pods: string, now: string, next: NextOfTurn][] = [
    // `now`: the owner's pods, a ready one with a +.
    ['begins with its first pod', 3, 'a b c', 'a+ b+ c+', remove('a')],
    ['waits while a pod goes', 3, 'a b c', 'b+ c+', { kind: 'wait', ready: 2 }],
    ['waits while the successor starts', 3, 'a b c', 'b+ c+ x', { kind: 'wait', ready: 2 }],
    ['goes on when the successor is ready', 3, 'a b c', 'b+ c+ x+', remove('b')],
    ['waits for the last successor', 3, 'a b c', 'x+ y+', { kind: 'wait', ready: 2 }],
    ['is over when all are ready again', 3, 'a b c', 'x+ y+ z+', { kind: 'over' }],
    ['is over when the pods went by themselves', 0, 'a', '', { kind: 'over' }],
    ['is over when the owner was scaled to nothing', 3, 'a b c', '', { kind: 'over' }],
    ['takes what is not ready first', 1, 'a b', 'a+ b', remove('b')],
    ['goes on where nothing was ready', 0, 'a b', 'a b', remove('a')],
    ['goes on where the owner has more than before', 1, 'a', 'a+ x+ y+', remove('a')],
    ['leaves pods that are not to go', 2, 'a', 'a+ other+', remove('a')],
  ];
  for (const [what, target, pods, now, next] of rows) {
    it(what, () => {
      const seen = new Map(
        now
          .split(' ')
          .filter((text) => text !== '')
          .map((text) => [text.replace('+', ''), text.endsWith('+')]),
      );
      expect(nextOfTurn({ pods: pods.split(' '), target }, seen)).to.deep.equal(next);
    });
  }
});
