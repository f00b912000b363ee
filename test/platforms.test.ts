import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { marksInTests, NOT_ON_WINDOWS, PAGE, withWindowsTable } from './support/platforms.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });

describe('on systems other than Linux', () => {
  /** What git has; nothing in a copy without its folder `.git`. */
  let tracked: readonly string[] = [];
  before(() => {
    if (existsSync(`${ROOT}.git`)) tracked = git('ls-files', '-z').split('\0').filter(Boolean);
  });

  it('the tests that Windows skips are those that CONTRIBUTING.md lists', () => {
    const page = readFileSync(new URL(`../${PAGE}`, import.meta.url), 'utf8');
    expect(page, 'npm run generate:windows').to.equal(withWindowsTable(page));
    const reasons = new Set(marksInTests().map(({ reason }) => reason));
    expect([...reasons], 'reasons that tests have').to.have.members(Object.keys(NOT_ON_WINDOWS));
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
