import { expect } from 'chai';
import { parseConfig, readConfigFile } from '../../src/config/config-file.ts';
import { ConfigurationError } from '../../src/config/shown-problems.ts';
import { folderForEach } from '../support/folder.ts';

describe('a configuration file', () => {
  const refused: [given: string, text: string, expected: RegExp][] = [
    ['is not YAML', 'a: 1\nb: [1\n', /^Flow sequence .*\(c\.yaml:3\)$/],
    ['names a key twice', 'a: 1\nb: 2\na: 3\n', /^key "a" is given twice \(c\.yaml:3\)$/],
    [
      'holds two documents',
      'a: 1\n---\nb: 2\n',
      /^c\.yaml: got 2 documents, 0 of them ConfigMaps with config\.yaml, expected one configuration$/,
    ],
    [
      'is a ConfigMap without a configuration',
      'apiVersion: v1\nkind: ConfigMap\ndata: {a: x, b: y}\n',
      /^c\.yaml: got a ConfigMap without config\.yaml \(data: a, b\), expected a configuration, a ConfigMap that contains/,
    ],
    [
      'is another object',
      'apiVersion: apps/v1\nkind: Deployment\n',
      /^c\.yaml: got an object of kind "Deployment", expected a configuration, /,
    ],
    [
      'is not YAML in its ConfigMap',
      'kind: ConfigMap\ndata:\n  config.yaml: |\n    a: 1\n    b: [1\n',
      /^Flow sequence .*\(c\.yaml:[56]\)$/,
    ],
    ['is nothing like YAML', 'a: 1\n'.repeat(30), /^(key .* is given twice .*\n){20}and 9 more$/],
    ['is indented with tabs', 'a:\n\tb: 1\n', /\(c\.yaml:2\)$/],
    ['uses an alias without its anchor', 'a: *x\n', /^Unresolved alias.*\(c\.yaml\)$/],
    [
      'grows without limit',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
        .split('')
        .map((name, index) => `${name}: &${name} [${`*${'abcdefgh'[index]},`.repeat(9)}]`)
        .join('\n')}\n`,
      /^Excessive alias count.*\(c\.yaml\)$/,
    ],
  ];
  for (const [given, text, expected] of refused) {
    it(`that ${given} is refused in one line`, () =>
      expect(() => parseConfig('c.yaml', text))
        .to.throw(ConfigurationError)
        .with.property('message')
        .that.matches(expected));
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
  for (const [path, line] of lines)
    it(`has ${path.join('.') || 'itself'} in line ${line}`, () => expect(lineOf(path)).to.equal(line));

  const CONFIG_MAP = `apiVersion: v1
kind: ConfigMap
metadata: {name: archaware-controller}
data:
  config.yaml: |
    # Every key
    taints:
      key: x
`;
  const held: [given: string, text: string, line: number, note: RegExp | undefined][] = [
    ['alone', 'taints:\n  key: x\n', 2, undefined],
    ['after a separator', '---\ntaints:\n  key: x\n---\n', 3, undefined],
    ['in a ConfigMap', CONFIG_MAP, 8, /^this is a ConfigMap: only its config\.yaml is checked$/],
    ['in a ConfigMap among other objects', `kind: Role\n---\n${CONFIG_MAP}---\nkind: Pod\n`, 10, /ConfigMap/],
    ['in a ConfigMap, quoted', 'kind: ConfigMap\ndata: {config.yaml: "taints:\\n  key: x"}', 2, /ConfigMap/],
    [
      'in values of the Helm chart',
      'replicas: 1\nconfig:\n  taints:\n    key: x\n',
      4,
      /^this is a Helm values file: only its `config:` is checked$/,
    ],
  ];
  for (const [given, text, line, note] of held) {
    it(`is found ${given}, with its lines`, () => {
      const file = parseConfig('c.yaml', text);
      expect(file.value).to.deep.equal({ taints: { key: 'x' } });
      expect(file.lineOf(['taints', 'key'])).to.equal(line);
      if (note === undefined) expect(file).not.to.have.property('note');
      else expect(file.note).to.match(note);
    });
  }

  for (const text of ['', '# nothing\n', '---\n', 'config:\n'])
    it(`${JSON.stringify(text)} is an empty configuration`, () =>
      expect(parseConfig('c.yaml', text).value).to.deep.equal({}));

  it('may be JSON', () => expect(parseConfig('c.json', '{"a": {"b": [1]}}').value).to.deep.equal({ a: { b: [1] } }));

  describe('on disk', () => {
    const { at, write } = folderForEach();

    it('is read', async () => {
      await write({ 'c.yaml': '\ufeffa: ü\r\n' });
      expect(readConfigFile(at('c.yaml')).value).to.deep.equal({ a: 'ü' });
    });

    it('that does not exist is refused in one line', () => {
      const name = at('none.yaml');
      expect(() => readConfigFile(name)).to.throw(ConfigurationError, `${name} cannot be read (ENOENT)`);
      expect(() => readConfigFile(at())).to.throw(ConfigurationError, `${at()} cannot be read (EISDIR)`);
    });
  });
});
