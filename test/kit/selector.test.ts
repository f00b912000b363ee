import { expect } from 'chai';
import { matchesSelector, parseSelector } from '../../src/kit/label-syntax.ts';

describe('a label selector', () => {
  const rows: [selector: string, matching: Record<string, string>[], other: Record<string, string>[]][] = [
    ['', [{}, { a: 'b' }], []],
    ['  ', [{}], []],
    ['a=b', [{ a: 'b' }, { a: 'b', c: 'd' }], [{}, { a: 'c' }, { a: '' }]],
    ['a==b', [{ a: 'b' }], [{}, { a: '=b' }]],
    ['a = b', [{ a: 'b' }], [{ a: ' b' }]],
    ['a=', [{ a: '' }], [{}, { a: 'b' }]],
    ['a!=b', [{}, { a: 'c' }, { a: '' }], [{ a: 'b' }]],
    ['a', [{ a: '' }, { a: 'b' }], [{}, { b: 'a' }]],
    ['!a', [{}, { b: 'a' }], [{ a: '' }, { a: 'b' }]],
    ['! a', [{}], [{ a: '' }]],
    ['a in (b,c)', [{ a: 'b' }, { a: 'c' }], [{}, { a: 'd' }, { a: '' }]],
    ['a in ( b , c )', [{ a: 'c' }], [{ a: ' c ' }]],
    ['a in(b)', [{ a: 'b' }], [{}]],
    ['a in ()', [{ a: '' }], [{}, { a: 'b' }]],
    ['a notin (b,c)', [{}, { a: 'd' }], [{ a: 'b' }, { a: 'c' }]],
    [
      'a=b,c!=d,!e,f in (g,h)',
      [{ a: 'b', f: 'h' }],
      [{ a: 'b' }, { a: 'b', f: 'g', e: '' }, { a: 'b', f: 'g', c: 'd' }],
    ],
    ['kubernetes.io/os=linux', [{ 'kubernetes.io/os': 'linux' }], [{}]],
    ['node-role.kubernetes.io/control-plane', [{ 'node-role.kubernetes.io/control-plane': '' }], [{}]],
    ['in', [{ in: '' }], [{}]],
    ['in in (in,notin)', [{ in: 'notin' }], [{}]],
    ['constructor', [{ constructor: 'x' }], [{}]],
    ['!toString', [{}], [{ toString: 'x' }]],
    ['a=1.2_3-4', [{ a: '1.2_3-4' }], [{}]],
  ];
  for (const [text, matching, other] of rows) {
    it(JSON.stringify(text), () => {
      const selector = parseSelector(text);
      for (const labels of matching) expect(matchesSelector(selector, labels), JSON.stringify(labels)).to.equal(true);
      for (const labels of other) expect(matchesSelector(selector, labels), JSON.stringify(labels)).to.equal(false);
    });
  }

  const unreadable =
    '=b|a=b c|a=-b|a>1|a=b=c|a in b|a in (b|a in b)|a in ((b))|a in (b c)|a In (b)|!a=b|!!a|a/b/c|A.B/c|/a|a\n=b\u0000|ä=b';
  const tooLong = [`${'a'.repeat(64)}=b`, `a=${'b'.repeat(64)}`];
  const refused = [...unreadable.split('|'), ...tooLong].map((text) => [text, text] as const);
  for (const [text, part] of [...[',', 'a,', 'a=b,,c'].map((list) => [list, ''] as const), ...refused]) {
    it(`${JSON.stringify(text).slice(0, 40)} is refused with the invalid part`, () => {
      expect(() => parseSelector(text)).to.throw(Error, `cannot read "${part}"`);
    });
  }

  const long: [what: string, text: string][] = [
    ['letters', 'a'.repeat(100_000)],
    ['spaces', `a${' '.repeat(100_000)}!`],
    ['dots and slashes', 'a.'.repeat(50_000)],
    ['negations', '!'.repeat(100_000)],
    ['parentheses', `a in ${'('.repeat(100_000)}`],
    ['closing parentheses', ')'.repeat(100_000)],
    ['spaces in a list', `a in (${' '.repeat(100_000)}!)`],
  ];
  for (const [what, text] of long) {
    it(`of 100,000 ${what} is refused without delay`, () => {
      expect(() => parseSelector(text)).to.throw(Error, 'cannot read');
    });
  }

  it('of 20,000 requirements is parsed without delay', () => {
    expect(parseSelector(Array.from({ length: 20_000 }, (_, index) => `k${index}=v`).join())).to.have.length(20_000);
  });
});
