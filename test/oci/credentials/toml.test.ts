import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createOperatorCredentials, parseTomlLogin } from '../../../src/oci/credentials/operator.ts';
import { folderForEach } from '../../support/folder.ts';
import { needsPosix } from '../../support/platforms.ts';

const GOOD = 'user = "me"\nsecret = "hunter2"\n';

describe('a TOML file of a login', () => {
  const names: [name: string, pattern: string][] = [
    ['docker.io.toml', 'docker.io'],
    ['Quay.io.toml', 'quay.io'],
    ['registry.example.com:5000.toml', 'registry.example.com:5000'],
    ['localhost.toml', 'localhost'],
    ['*.example.com.toml', '*.example.com'],
    ['[fd00::1]:5000.toml', '[fd00::1]:5000'],
  ];
  for (const [name, pattern] of names) {
    it(`with the name ${name} is for ${pattern}`, () => {
      expect(parseTomlLogin(name, GOOD)).to.deep.equal({ pattern, username: 'me', password: 'hunter2' });
    });
  }

  it('may have comments, other quotes and other ends of lines', () => {
    const text = "# of the team\r\nuser = 'me'   # a robot\r\nsecret = '''hunter\\2'''\r\n";
    expect(parseTomlLogin('a.b.toml', text)).to.include({ username: 'me', password: 'hunter\\2' });
  });

  const refused: [what: string, name: string, text: string, message: RegExp][] = [
    ['an unknown key', 'a.b.toml', `${GOOD}password = "hunter2"`, /unknown key "password"; expected user and secret/],
    ['a table', 'a.b.toml', `${GOOD}[auth]\nx = 1`, /unknown key "auth"/],
    ['no user', 'a.b.toml', 'secret = "hunter2"', /^it has no user$/],
    ['no secret', 'a.b.toml', 'user = "hunter2"', /^it has no secret$/],
    ['nothing', 'a.b.toml', '', /^it has no user$/],
    ['a number', 'a.b.toml', 'user = "me"\nsecret = 123', /^its secret must be a string/],
    ['an empty secret', 'a.b.toml', 'user = "me"\nsecret = ""', /^its secret must be/],
    ['a syntax error', 'a.b.toml', 'user = "me"\nsecret = hunter2', /^line 2, column 10: /],
    ['a key twice', 'a.b.toml', `${GOOD}secret = "hunter2"`, /^line 3, column \d+: /],
    ['a name that is not a host', 'a.b_5000.toml', GOOD, /name is not a host/],
    ['a name with a space', 'my registry.toml', GOOD, /name is not a host/],
    ['no name', '.toml', GOOD, /name is not a host/],
  ];
  for (const [what, name, text, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parseTomlLogin(name, text))
        .to.throw(Error, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});

describe('a directory of TOML files', () => {
  const { at } = folderForEach();

  /** Returns the users for some hosts, and the problems. */
  async function read(path = at()) {
    const { reload, lookup } = createOperatorCredentials({
      dockerConfigFiles: [],
      directory: path,
      kubelet: { config: '', binDirectory: '' },
      timeoutMs: 1000,
      now: () => 0,
      onProblem: () => undefined,
    });
    const problems = (await reload()).map(({ file, problem }) => `${basename(file)}: ${problem}`);
    const signal = new AbortController().signal;
    const names = ['docker.io/library/a', 'quay.io/a', 'a.b/a'];
    const found = await Promise.all(names.map((name) => lookup(name, signal, createAskers('n'))));
    return { problems, patterns: found.flat().map(({ pattern, username }) => `${username}@${pattern}`) };
  }

  it('is read like a mounted Secret: links followed, ..data and other files left alone', async function () {
    needsPosix(this, 'link');
    const version = at('..2026_01_01');
    await mkdir(version);
    await writeFile(join(version, 'docker.io.toml'), GOOD);
    await symlink('..2026_01_01', at('..data'));
    await symlink('..data/docker.io.toml', at('docker.io.toml'));
    for (const name of ['.quay.io.toml', 'quay.io.toml~', '.quay.io.toml.swp', 'README', 'quay.io.TOML']) {
      await writeFile(at(name), 'hunter2');
    }
    expect(await read()).to.deep.equal({ problems: [], patterns: ['me@docker.io'] });
  });

  it('reports what is wrong with each file, and reads the others', async function () {
    needsPosix(this, 'link');
    await writeFile(at('a.b.toml'), GOOD);
    await writeFile(at('c.d.toml'), 'hunter2');
    await mkdir(at('e.f.toml'));
    await symlink('nowhere', at('g.h.toml'));
    expect(await read()).to.deep.equal({
      patterns: ['me@a.b'],
      problems: [
        'c.d.toml: line 1, column 1: incomplete key-value: cannot find end of key',
        'e.f.toml: is not a file',
        'g.h.toml: cannot be read (ENOENT)',
      ],
    });
  });

  it('that does not exist is reported as such', async () => {
    expect(await read(at('x'))).to.deep.equal({
      patterns: [],
      problems: ['x: cannot be read (ENOENT)'],
    });
  });
});
