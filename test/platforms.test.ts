import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { marksInTests, NOT_ON_WINDOWS, PAGE, withWindowsTable } from './support/platforms.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);

describe('on systems other than Linux', () => {
  it('the tests that Windows skips are those that docs/support.md lists', () => {
    const page = readFileSync(new URL(`../${PAGE}`, import.meta.url), 'utf8');
    expect(page, 'npm run generate:windows').to.equal(withWindowsTable(page));
    const reasons = new Set(marksInTests().map(({ reason }) => reason));
    expect([...reasons], 'reasons that tests have').to.have.members(Object.keys(NOT_ON_WINDOWS));
  });

  it('no two files differ by capital letters only', () => {
    const names = tracked.map((file) => file.toLowerCase());
    expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([]);
  });

  it('no file has a name that Windows does not allow', () => {
    const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
    const wrong = (name: string) => /[<>:"|?*\\]|[. ]$/.test(name) || reserved.test(name);
    expect(tracked.filter((file) => file.split('/').some(wrong))).to.deep.equal([]);
  });

  it('a checkout has no carriage returns, whatever git is set to', () => {
    expect(readFileSync(new URL('../.gitattributes', import.meta.url), 'utf8')).to.match(/^\* text=auto eol=lf$/m);
    const ends = execFileSync('git', ['ls-files', '--eol'], { cwd: ROOT, encoding: 'utf8' }).split('\n');
    expect(ends.filter((line) => /^i\/(crlf|mixed)/.test(line))).to.deep.equal([]);
  });
});
