import { expect } from 'chai';
import { matchesAnyGlob, matchesGlob } from '../../src/kit/glob.ts';

describe('a pattern', () => {
  const rows: [pattern: string, matching: string[], other: string[]][] = [
    ['', [''], ['a']],
    ['*', ['', 'a', 'a/b'], []],
    ['**', ['', 'a'], []],
    ['a', ['a'], ['', 'aa', 'A', 'b']],
    ['?', ['a', '/', '*'], ['', 'ab']],
    ['kube-*', ['kube-', 'kube-system'], ['kube', 'my-kube-system']],
    ['*-system', ['-system', 'kube-system', 'x-system-system'], ['system', 'kube-systems']],
    ['a*b*c', ['abc', 'axxbxxc', 'abbc', 'abcbc'], ['ab', 'acb', 'abcd']],
    ['a?c', ['abc', 'a?c'], ['ac', 'abbc']],
    ['*?', ['a', 'ab'], ['']],
    ['r.example.com/legacy/*', ['r.example.com/legacy/a/b:1'], ['r.example.com/legacy', 'rxexample.com/legacy/a']],
    ['r[1-2]', ['r[1-2]'], ['r1']],
    ['a.c', ['a.c'], ['abc']],
    ['(a|b)+$', ['(a|b)+$'], ['a']],
    ['\\*', ['\\', '\\x'], ['*']],
  ];
  for (const [pattern, matching, other] of rows) {
    it(JSON.stringify(pattern), () => {
      for (const text of matching) expect(matchesGlob(pattern, text), JSON.stringify(text)).to.equal(true);
      for (const text of other) expect(matchesGlob(pattern, text), JSON.stringify(text)).to.equal(false);
    });
  }

  it('of a list may match; an empty list matches nothing', () => {
    expect(matchesAnyGlob(['a', 'b*'], 'bc')).to.equal(true);
    expect(matchesAnyGlob(['a', 'b'], 'bc')).to.equal(false);
    expect(matchesAnyGlob([], '')).to.equal(false);
  });

  const long: [pattern: string, text: string][] = [
    ['*a*a*a*a*a*a*a*a*a*a*b', 'a'.repeat(200_000)],
    ['*aaaaaaaaaaaaaaaaaaaab', 'a'.repeat(200_000)],
    [`${'*'.repeat(10_000)}b`, 'a'.repeat(200_000)],
  ];
  for (const [pattern, text] of long) {
    it(`${pattern.slice(0, 24)} fails on 200,000 letters without delay`, () => {
      expect(matchesGlob(pattern, text)).to.equal(false);
    });
  }
});
