import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });

describe('on systems other than Linux', () => {
  /** What git has; nothing in a copy without its folder `.git`. */
  let tracked: readonly string[] = [];
  before(() => {
    if (existsSync(`${ROOT}.git`)) tracked = git('ls-files', '-z').split('\0').filter(Boolean);
  });

  it('no two files differ by capital letters only', function () {
    if (tracked.length === 0) this.skip();
    const names = tracked.map((file) => file.toLowerCase());
    expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([]);
  });

  it('no file has a name that Windows does not allow', function () {
    if (tracked.length === 0) this.skip();
    const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
    const wrong = (name: string) => /[<>:"|?*\\]|[. ]$/.test(name) || reserved.test(name);
    expect(tracked.filter((file) => file.split('/').some(wrong))).to.deep.equal([]);
  });

  it('a checkout has no carriage returns, whatever git is set to', () => {
    expect(readFileSync(new URL('../.gitattributes', import.meta.url), 'utf8')).to.match(/^\* text=auto eol=lf$/m);
    const ends = tracked.length === 0 ? [] : git('ls-files', '--eol').split('\n');
    expect(ends.filter((line) => /^i\/(crlf|mixed)/.test(line))).to.deep.equal([]);
  });
});
