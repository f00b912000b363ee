import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseConfig, readConfigFile } from '../../src/config/file.ts';
import { ConfigurationError } from '../../src/config/problems.ts';

describe('a configuration file', () => {
  const refused: [given: string, text: string, expected: RegExp][] = [
    ['is no YAML', 'a: 1\nb: [1\n', /^Flow sequence .*\(c\.yaml:3\)$/],
    ['names a key twice', 'a: 1\nb: 2\na: 3\n', /^Map keys must be unique.*\(c\.yaml:3\)$/],
    ['holds two documents', 'a: 1\n---\nb: 2\n', /multiple documents.*\(c\.yaml:\d\)$/],
    ['is indented with tabs', 'a:\n\tb: 1\n', /\(c\.yaml:2\)$/],
    ['uses an alias without its anchor', 'a: *x\n', /^Unresolved alias.*\(c\.yaml\)$/],
    [
      'grows beyond all bounds',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
        .split('')
        .map((name, index) => `${name}: &${name} [${`*${'abcdefgh'[index]},`.repeat(9)}]`)
        .join('\n')}\n`,
      /^Excessive alias count.*\(c\.yaml\)$/,
    ],
  ];
  for (const [given, text, expected] of refused) {
    it(`that ${given} is refused in one line`, () => {
      expect(() => parseConfig('c.yaml', text))
        .to.throw(ConfigurationError)
        .with.property('message')
        .that.matches(expected);
    });
  }

  const lines: [path: (string | number)[], line: number][] = [
    [['a'], 2],
    [['a', 'b'], 3],
    [['a', 'b', 0], 4],
    [['a', 'b', 1], 5],
    [['a', 'b', 1, 'c'], 6],
    [['a', 'b', 1, 'missing'], 5],
    [['a', 'missing'], 2],
    [['386'], 7],
    [['missing'], 1],
    [[], 1],
  ];
  const { lineOf } = parseConfig('c.yaml', '# comment\na:\n  b:\n    - 1\n    - d: 1\n      c: 2\n386: x\n');
  for (const [path, line] of lines) {
    it(`has ${path.join('.') || 'itself'} in line ${line}`, () => {
      expect(lineOf(path)).to.equal(line);
    });
  }

  it('may be JSON', () => {
    expect(parseConfig('c.json', '{"a": {"b": [1]}}').value).to.deep.equal({ a: { b: [1] } });
  });

  describe('on disk', () => {
    const directory = mkdtempSync(join(tmpdir(), 'archaware-config-'));
    after(() => rmSync(directory, { recursive: true }));

    it('is read', () => {
      const name = join(directory, 'c.yaml');
      writeFileSync(name, '\ufeffa: ü\r\n');
      expect(readConfigFile(name).value).to.deep.equal({ a: 'ü' });
    });

    it('is refused in one line where there is none', () => {
      const name = join(directory, 'none.yaml');
      expect(() => readConfigFile(name)).to.throw(
        ConfigurationError,
        `configuration file ${name} cannot be read (ENOENT)`,
      );
      expect(() => readConfigFile(directory)).to.throw(ConfigurationError, `${directory} cannot be read (EISDIR)`);
    });
  });
});
