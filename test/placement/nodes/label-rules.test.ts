import { expect } from 'chai';
import { isLabelKey, isReservedKey } from '../../../src/kit/label-syntax.ts';
import { parseRule, type RuleFile, readRules } from '../../../src/placement/nodes/label-rules.ts';

/** Conditions as they are written. */
function texts(text: string): string[] {
  const sign = { has: '', 'has-not': '', is: '=', 'is-not': '!=' };
  return parseRule(text).conditions.map(
    ({ key, operator, value }) => `${operator === 'has-not' ? '!' : ''}${key}${sign[operator]}${value}`,
  );
}

const LONG = 'a'.repeat(63);
const DOMAIN = [LONG, LONG, LONG, 'a'.repeat(61)].join('.');

describe('the lines of a label rule', () => {
  const rows: [given: string, text: string, expected: readonly string[]][] = [
    ['an empty file', '', []],
    ['a key without a domain', 'gpu', ['gpu']],
    ['no newline at the end', 'a\nb', ['a', 'b']],
    ['blank lines', '\n\na\n  \n\t\nb\n\n', ['a', 'b']],
    ['CRLF', 'a\r\nb=c\r\n\r\n!d\r\n', ['a', 'b=c', '!d']],
    ['CR alone', 'a\rb', ['a', 'b']],
    ['blanks around a line', '  a\t \n\tb=c  ', ['a', 'b=c']],
    ['a byte order mark', '\uFEFFa\nb', ['a', 'b']],
    ['a comment', '# of the USB stick\na', ['a']],
    ['a comment after a key', 'a # b\nc=d#e\n!f#', ['a', 'c=d', '!f']],
    ['a comment with signs', '# !!= = \u0000 \u202E é', []],
    ['another value', 'a!=b', ['a!=b']],
    ['the value false', 'a=false\nb!=false', ['a=false', 'b!=false']],
    ['the absence of a key', '!example.com/gpu', ['!example.com/gpu']],
    ['a key of Kubernetes, which may be asked for', 'kubernetes.io/arch=arm64', ['kubernetes.io/arch=arm64']],
    ['the same twice', 'a\na', ['a', 'a']],
    ['every character of a name', 'a.b-c.d/A_b.C-9=A_b.C-9', ['a.b-c.d/A_b.C-9=A_b.C-9']],
    ['the longest name and value', `${DOMAIN}/${LONG}=${LONG}`, [`${DOMAIN}/${LONG}=${LONG}`]],
    ['names that JavaScript knows', 'constructor\n__proto__a', ['constructor']],
  ];
  for (const [given, text, expected] of rows)
    it(`are read: ${given}`, () => expect(texts(text)).to.deep.equal(expected));

  it('are counted from 1', () =>
    expect(parseRule('# x\r\na\n\nb=c').conditions).to.deep.equal([
      { key: 'a', operator: 'has', value: '', line: 2 },
      { key: 'b', operator: 'is', value: 'c', line: 4 },
    ]));

  const refused: [given: string, text: string, lines?: readonly number[]][] = [
    ['two keys', 'a b'],
    ['blanks around a sign', 'a = b'],
    ['! twice', '!!a'],
    ['! and a value', '!a=b'],
    ['a sign without a key', '=b'],
    ['==', 'a==b'],
    ['a value with a sign', 'a=b=c'],
    ['keys with a comma', 'a,b'],
    ['a key with two slashes', 'a/b/c'],
    ['a slash at the end', 'example.com/'],
    ['a domain in capitals', 'Example.com/a'],
    ['a domain that begins with a dot', '.example.com/a'],
    ['a domain with "_"', 'exa_mple.com/a'],
    ['a domain that is too long', `${DOMAIN}a/a`],
    ['a name that is too long', `${LONG}a`],
    ['a name that ends with a dot', 'a.'],
    ['a name that begins with "-"', '-a'],
    ['a name with another letter', 'ä'],
    ['a value that is too long', `a=${LONG}a`],
    ['a value with another character', 'a=b/c'],
    ['a value that begins with "."', 'a=.b'],
    ['a glob', 'feature.node.kubernetes.io/*'],
    ['a null byte', 'a\u0000'],
    ['a good line between two bad ones', 'a b\nc\n\nd e', [1, 4]],
  ];
  for (const [given, text, lines = [1]] of refused)
    it(`are refused: ${given}`, () => expect(parseRule(text).problems.map(({ line }) => line)).to.deep.equal(lines));

  it('are escaped and cut in error messages', () => {
    const [problem] = parseRule(`\u001B[31m${'x'.repeat(100_000)}`).problems;
    expect(problem?.problem).to.match(/^got "\\u001b\[31mx+…, expected the label of a node as key, key=value, /);
    expect(problem?.problem.length).to.be.below(250);
  });
});

describe('the rules of a directory', () => {
  const file = (label: string, text: string): RuleFile => ({ label, file: `dir/${label}`, text });
  const read = (...files: RuleFile[]) => {
    const { rules, problems } = readRules(files);
    return { order: rules.rules.map(({ label }) => label), refused: [...rules.refused].sort(), problems };
  };

  it('are those of its files', () =>
    expect(read(file('a/x', 'k'), file('a/y', ''))).to.deep.equal({
      order: ['a/x', 'a/y'],
      refused: [],
      problems: [],
    }));

  it('leave out refused files, with file and line, and have every other', () => {
    const found = read(
      file('a/x', 'k\nk k'),
      { label: 'a/y', file: 'dir/a/y', problem: 'is no file' },
      file('b/z', 'k'),
    );
    expect(found.order).to.deep.equal(['b/z']);
    expect(found.refused).to.deep.equal(['a/x', 'a/y']);
    expect(found.problems).to.deep.equal([
      'dir/a/x:2: got "k k", expected the label of a node as key, key=value, key!=value or !key',
      'dir/a/y: is no file',
    ]);
  });

  it('report five lines of a file, and count the others', () => {
    const { problems } = read(file('a/x', '?\n'.repeat(9)));
    expect(problems).to.have.lengthOf(6);
    expect(problems[5]).to.equal('dir/a/x: and 4 more line(s) like that');
  });

  const rows: [given: string, files: Record<string, string>, order: string[], refused: string[]][] = [
    ['one asks for the next', { 'a/a': 'a/b', 'a/b': 'a/c', 'a/c': 'k' }, ['a/c', 'a/b', 'a/a'], []],
    ['two ask for the same', { 'a/a': 'a/c', 'a/b': '!a/c', 'a/c': 'k' }, ['a/c', 'a/a', 'a/b'], []],
    ['one asks for two, and twice', { 'a/a': 'a/b\na/c\na/b', 'a/b': 'k', 'a/c': 'a/b' }, ['a/b', 'a/c', 'a/a'], []],
    ['one asks for itself', { 'a/a': 'a/a', 'a/b': 'k' }, ['a/b'], ['a/a']],
    ['two ask for each other', { 'a/a': 'a/b', 'a/b': '!a/a' }, [], ['a/a', 'a/b']],
    [
      'some lead into a circle, and some out of it',
      { 'a/in': 'a/a', 'a/a': 'a/b', 'a/b': 'a/c', 'a/c': 'a/a\na/out', 'a/out': 'k', 'a/far': 'a/in' },
      ['a/in', 'a/out', 'a/far'],
      ['a/a', 'a/b', 'a/c'],
    ],
    ['one lies between two circles', { 'a/a': 'a/a\na/b', 'a/b': 'a/c', 'a/c': 'a/c' }, ['a/b'], ['a/a', 'a/c']],
    ['one asks for a refused one', { 'a/a': 'a/b', 'a/b': '?' }, ['a/a'], ['a/b']],
  ];
  for (const [given, files, order, refused] of rows) {
    it(`are in the order of their evaluation if ${given}`, () => {
      const found = read(...Object.entries(files).map(([label, text]) => file(label, text)));
      expect(found).to.deep.include({ order, refused });
      expect(found.problems).to.have.lengthOf(refused.length);
    });
  }

  it('name the line of a cycle', () =>
    expect(read(file('a/x', 'k\na/y'), file('a/y', '!a/x')).problems).to.deep.equal([
      'dir/a/x:2: a/y is itself decided by a/x; expected no rule that depends on itself',
      'dir/a/y:1: a/x is itself decided by a/y; expected no rule that depends on itself',
    ]));

  it('may form a long chain', () => {
    const count = 5_000;
    const files = Array.from({ length: count }, (_, index) => file(`a/l${index}`, `a/l${index + 1}`));
    const { order, refused } = read(...files);
    expect([order.length, order[0], refused]).to.deep.equal([count, `a/l${count - 1}`, []]);
  });
});

describe('the key of a label', () => {
  const rows: [key: string, valid: boolean, reserved: boolean][] = [
    ['a', true, false],
    ['example.com/a', true, false],
    ['kubernetes.io/a', true, true],
    ['k8s.io/a', true, true],
    ['node-role.kubernetes.io/a', true, true],
    ['a.b.k8s.io/a', true, true],
    ['notkubernetes.io/a', true, false],
    ['kubernetes.io.example.com/a', true, false],
    ['kubernetes.io', true, false],
    ['', false, false],
    ['/', false, false],
    ['a b', false, false],
    ['a\n', false, false],
  ];
  for (const [key, valid, reserved] of rows)
    it(`${JSON.stringify(key)} is ${valid ? 'valid' : 'refused'}${reserved ? ' and reserved' : ''}`, () =>
      expect([isLabelKey(key), isReservedKey(key)]).to.deep.equal([valid, reserved]));
});
